//! Graphs before they run: the four edits, what the check refuses and how, the description.

use std::sync::Arc;

use crate::common::{
    Acting, PAGE, SinkCounts, WORDS, chain, count, double, ends, memory, options, sink,
};
use serde_json::json;
use tonnage_pipeline::{Graph, GraphError, MemoryNeed, Node, RunError, RunHandle};

fn source() -> Acting {
    count(vec![])
}

fn end() -> Acting {
    sink(&Arc::new(SinkCounts::default()))
}

fn names(graph: &Graph) -> Vec<&str> {
    graph
        .nodes()
        .iter()
        .map(|node| node.name.as_str())
        .collect()
}

fn job() -> Graph {
    chain([
        ("read", source()),
        ("work", double()),
        ("copy", double()),
        ("write", end()),
    ])
}

fn mismatch(from: &str, gives: &str, to: &str, takes: &str) -> GraphError {
    let [from, gives, to, takes] = [from, gives, to, takes].map(ToOwned::to_owned);
    GraphError::Mismatch {
        from,
        gives,
        to,
        takes,
    }
}

#[test]
fn what_fits_is_accepted() {
    assert_eq!(job().check(job().memory_bytes()), Ok(()));
}

#[test]
fn ports_that_differ_name_both_stages() {
    let wordy = Acting {
        takes: Some(WORDS),
        ..double()
    };
    let graph = chain([("read", source()), ("words", wordy), ("write", end())]);
    let error = graph.check(usize::MAX).unwrap_err();
    assert_eq!(error, mismatch("read", "bytes", "words", "words"));
    assert_eq!(
        error.to_string(),
        "read outputs bytes, but words expects words"
    );
}

#[test]
fn open_ends_are_refused() {
    let (beginning, ending) = ("the graph's beginning", "the graph's end");
    for (graph, error) in [
        (
            chain([("work", double())]),
            mismatch(beginning, "nothing", "work", "bytes"),
        ),
        (
            chain([("read", source()), ("work", double())]),
            mismatch("work", "bytes", ending, "nothing"),
        ),
        // Sources and sinks in the middle leave open ends there.
        (
            chain([("read", source()), ("write", end()), ("again", end())]),
            mismatch("write", "nothing", "again", "bytes"),
        ),
        (
            chain([("write", end()), ("read", source())]),
            mismatch(beginning, "nothing", "write", "bytes"),
        ),
        (
            chain([
                (
                    "a",
                    Acting {
                        gives: None,
                        ..source()
                    },
                ),
                ("b", source()),
            ]),
            mismatch("a", "nothing", "b", "nothing"),
        ),
    ] {
        assert_eq!(graph.check(usize::MAX), Err(error));
    }
}

#[test]
fn no_stages_and_stages_of_one_name_are_refused() {
    assert_eq!(Graph::chain([]).check(usize::MAX), Err(GraphError::Empty));
    let graph = chain([("read", source()), ("work", double()), ("read", end())]);
    assert_eq!(
        graph.check(usize::MAX),
        Err(GraphError::SameName("read".into()))
    );
}

#[test]
fn memory_over_budget_says_who_wants_what() {
    let memory = MemoryNeed {
        buffers: 3,
        buffer_bytes: 2 * PAGE,
        private_bytes: 5,
    };
    let graph = chain([
        ("read", source()),
        ("work", Acting { memory, ..double() }),
        ("write", end()),
    ]);
    let need = 2 * PAGE + 6 * PAGE + 5;
    assert_eq!(graph.memory_bytes(), need);
    assert_eq!(graph.check(need), Ok(()));
    let error = graph.check(need - 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the stages need 32773 bytes of memory (read 8192, work 24581, write 0), \
         but the budget is 32772"
    );
}

#[test]
fn a_graph_that_does_not_check_does_not_run() {
    let seen = Arc::new(SinkCounts::default());
    let graph = chain([("read", count(vec![1])), ("write", sink(&seen))]);
    let tight = tonnage_pipeline::RunOptions {
        memory: memory(PAGE),
        ..options()
    };
    let refused = ends(graph, tight, &RunHandle::default());
    assert!(
        matches!(refused, Err(RunError::Graph(GraphError::Memory { .. }))),
        "{refused:?}"
    );
    assert_eq!(seen.buffers.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[test]
fn edits_do_what_they_say_and_leave_the_original() {
    let (graph, before) = (job(), job());
    let fed = graph.keep("work"..="copy").unwrap();
    assert_eq!(names(&fed), ["work", "copy"]);
    let fed = fed
        .feed(Node::new("made", source()))
        .drain(Node::new("gone", end()));
    assert_eq!(names(&fed), ["made", "work", "copy", "gone"]);
    assert_eq!(fed.check(usize::MAX), Ok(()));
    // The stages that were kept are the job's own, not copies of them.
    assert!(Arc::ptr_eq(&fed.nodes()[1].spec, &graph.nodes()[1].spec));

    let one = graph
        .replace("work"..="work", Node::new("tag", double()))
        .unwrap();
    assert_eq!(names(&one), ["read", "tag", "copy", "write"]);
    let both = graph
        .replace("work"..="copy", Node::new("tag", double()))
        .unwrap();
    assert_eq!(names(&both), ["read", "tag", "write"]);
    assert_eq!(both.check(usize::MAX), Ok(()));
    assert_eq!(graph, before);
}

#[test]
fn an_edit_of_an_unknown_stage_names_the_known() {
    let error = GraphError::NoStage {
        name: "sort".into(),
        known: "read, work, copy, write".into(),
    };
    assert_eq!(job().keep("sort"..="write").unwrap_err(), error);
    assert_eq!(job().keep("read"..="sort").unwrap_err(), error);
    let node = Node::new("tag", double());
    assert_eq!(job().replace("sort"..="sort", node).unwrap_err(), error);
    assert_eq!(
        error.to_string(),
        "the graph has no stage named sort; its stages are read, work, copy, write"
    );
}

#[test]
fn graphs_are_equal_by_name_kind_and_configuration() {
    let with = |name: &str, at: u64| {
        let stage = Acting {
            config: json!({ "at": at }),
            ..double()
        };
        chain([("read", source()), (name, stage), ("write", end())])
    };
    assert_eq!(with("work", 1), with("work", 1));
    assert_ne!(with("work", 1), with("work", 2));
    assert_ne!(with("work", 1), with("other", 1));
    assert_ne!(
        with("work", 1),
        with("work", 1).keep("read"..="work").unwrap()
    );
}

#[test]
fn a_drawing_shows_names_workers_and_ports() {
    let wordy = Acting {
        gives: Some(WORDS),
        ..double().workers(3)
    };
    let last = Acting {
        takes: Some(WORDS),
        ..end()
    };
    let graph = chain([("read", source()), ("words", wordy), ("write", last)]);
    assert_eq!(graph.draw(), "read x1 -bytes-> words x3 -words-> write x1");
    let drawing = graph.drawing();
    assert_eq!((drawing[1].workers, drawing[1].memory_bytes), (3, 2 * PAGE));
    assert_eq!(Graph::chain([]).draw(), "");
}

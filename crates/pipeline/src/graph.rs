//! The graph: stages in order, four edits, the check, and the description.
//!
//! A graph is a value. An edit gives another value that shares the stages it kept, so a benchmark
//! derived from a job's graph runs the job's own stages with the job's own settings. A job is a
//! chain so far; a branch would be a new kind of edge here, not a second graph type.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::error::GraphError;
use crate::stage::{Port, StageSpec};

/// A named stage of a graph.
#[derive(Clone)]
pub struct Node {
    /// Its name, unique in the graph.
    pub name: String,
    /// What it is.
    pub spec: Arc<dyn StageSpec>,
}

impl Node {
    /// Names a stage.
    pub fn new(name: impl Into<String>, spec: impl StageSpec + 'static) -> Self {
        Self {
            name: name.into(),
            spec: Arc::new(spec),
        }
    }
}

/// Nodes are equal if their name, kind, configuration and all that wires a graph are equal.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.spec, &other.spec);
        self.name == other.name
            && one.kind() == two.kind()
            && one.config() == two.config()
            && (one.input(), one.output()) == (two.input(), two.output())
            && (one.workers(), one.routing()) == (two.workers(), two.routing())
            && (one.inbox_bytes(), one.memory()) == (two.inbox_bytes(), two.memory())
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} ({} {})",
            self.name,
            self.spec.kind(),
            self.spec.config()
        )
    }
}

/// Stages in the order in which data flows through them.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
}

impl Graph {
    /// Stages, each feeding the next.
    pub fn chain(nodes: impl IntoIterator<Item = Node>) -> Self {
        Self {
            nodes: nodes.into_iter().collect(),
        }
    }

    /// The stages in order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Only the stages from the first name to the second.
    ///
    /// # Errors
    /// When a name is not in the graph.
    pub fn keep(&self, names: RangeInclusive<&str>) -> Result<Self, GraphError> {
        let (first, last) = self.find(&names)?;
        Ok(Self {
            nodes: self.nodes[first..=last].to_vec(),
        })
    }

    /// `node` in the place of the stages from the first name to the second.
    ///
    /// # Errors
    /// When a name is not in the graph.
    pub fn replace(&self, names: RangeInclusive<&str>, node: Node) -> Result<Self, GraphError> {
        let (first, last) = self.find(&names)?;
        let mut nodes = self.nodes.clone();
        nodes.splice(first..=last, [node]);
        Ok(Self { nodes })
    }

    /// `source` before the first stage.
    #[must_use]
    pub fn feed(mut self, source: Node) -> Self {
        self.nodes.insert(0, source);
        self
    }

    /// `sink` after the last stage.
    #[must_use]
    pub fn drain(mut self, sink: Node) -> Self {
        self.nodes.push(sink);
        self
    }

    fn find(&self, names: &RangeInclusive<&str>) -> Result<(usize, usize), GraphError> {
        let place = |name: &str| {
            self.nodes
                .iter()
                .position(|node| node.name == name)
                .ok_or_else(|| {
                    let known: Vec<&str> =
                        self.nodes.iter().map(|node| node.name.as_str()).collect();
                    GraphError::NoStage {
                        name: name.to_owned(),
                        known: known.join(", "),
                    }
                })
        };
        let (first, last) = (place(names.start())?, place(names.end())?);
        Ok((first.min(last), first.max(last)))
    }

    /// Checks that the graph can run within `budget_bytes` of memory.
    ///
    /// # Errors
    /// The first mismatch, with the names of the stages.
    pub fn check(&self, budget_bytes: usize) -> Result<(), GraphError> {
        if self.nodes.is_empty() {
            return Err(GraphError::Empty);
        }
        for (place, node) in self.nodes.iter().enumerate() {
            if self.nodes[..place]
                .iter()
                .any(|other| other.name == node.name)
            {
                return Err(GraphError::SameName(node.name.clone()));
            }
        }
        let say = |port: Option<Port>| port.map_or("nothing", |port| port.0).to_owned();
        let fits = |from: &str, gives: Option<Port>, to: &str, takes: Option<Port>, open: bool| {
            if gives == takes && gives.is_some() != open {
                return Ok(());
            }
            let (from, to) = (from.to_owned(), to.to_owned());
            Err(GraphError::Mismatch {
                from,
                gives: say(gives),
                to,
                takes: say(takes),
            })
        };
        let (first, last) = (&self.nodes[0], &self.nodes[self.nodes.len() - 1]);
        fits(
            "the graph's beginning",
            None,
            &first.name,
            first.spec.input(),
            true,
        )?;
        for pair in self.nodes.windows(2) {
            let (from, to) = (&pair[0], &pair[1]);
            fits(
                &from.name,
                from.spec.output(),
                &to.name,
                to.spec.input(),
                false,
            )?;
        }
        fits(
            &last.name,
            last.spec.output(),
            "the graph's end",
            None,
            true,
        )?;
        let need_bytes = self.memory_bytes();
        if need_bytes > budget_bytes {
            let share = |node: &Node| format!("{} {}", node.name, node.spec.memory().bytes());
            let shares: Vec<String> = self.nodes.iter().map(share).collect();
            return Err(GraphError::Memory {
                need_bytes,
                budget_bytes,
                shares: shares.join(", "),
            });
        }
        Ok(())
    }

    /// Memory that all stages together declare.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| node.spec.memory().bytes())
            .sum()
    }

    /// The graph as a record, for artifacts and pictures.
    #[must_use]
    pub fn drawing(&self) -> Vec<Drawing> {
        let draw = |node: &Node| Drawing {
            name: node.name.clone(),
            kind: node.spec.kind(),
            workers: node.spec.workers(),
            memory_bytes: node.spec.memory().bytes(),
            config: node.spec.config(),
        };
        self.nodes.iter().map(draw).collect()
    }

    /// The graph as one line of text: `read x1 -records-> partition x2 -blocks-> write x1`.
    #[must_use]
    pub fn draw(&self) -> String {
        let mut line = String::new();
        for node in &self.nodes {
            if let (false, Some(port)) = (line.is_empty(), node.spec.input()) {
                let _ = write!(line, " -{}-> ", port.0);
            }
            let _ = write!(line, "{} x{}", node.name, node.spec.workers());
        }
        line
    }
}

/// One stage of a graph, as it is reported.
#[derive(Clone, Debug, Serialize)]
pub struct Drawing {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: &'static str,
    /// Number of workers.
    pub workers: usize,
    /// Memory of its own.
    pub memory_bytes: usize,
    /// Configuration.
    pub config: Value,
}

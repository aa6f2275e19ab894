//! All to all on loopback: what is sent arrives, and a lost node ends the others with its name.

use std::thread;

use tonnage_graphs::benches::net::{Config, Outcome, run};
use tonnage_graphs::error::JobError;
use tonnage_net::{Effect, Fault, Settings};
use tonnage_pipeline::RunHandle;

use crate::common::{addresses, mesh_settings};

fn configs(endpoints: usize, connections: usize) -> Vec<Config> {
    let addresses = addresses(endpoints);
    let config = |number: usize| Config {
        mesh: Settings {
            checked: false,
            ..mesh_settings(&addresses, number, connections)
        },
        block_bytes: 10_000,
        sends_to: (0..endpoints).filter(|&to| to != number).collect(),
        evenly: true,
        seconds: 0.2,
    };
    (0..endpoints).map(config).collect()
}

fn run_all(configs: &[Config]) -> Vec<Result<Outcome, JobError>> {
    thread::scope(|scope| {
        let running: Vec<_> = configs
            .iter()
            .map(|config| scope.spawn(|| run(config, &RunHandle::default())))
            .collect();
        running
            .into_iter()
            .map(|running| running.join().expect("no panic"))
            .collect()
    })
}

#[test]
fn all_that_is_sent_arrives() {
    for (endpoints, connections) in [(2, 1), (3, 2)] {
        let outcomes: Vec<Outcome> = run_all(&configs(endpoints, connections))
            .into_iter()
            .map(|outcome| outcome.expect("done"))
            .collect();
        let sent: u64 = outcomes
            .iter()
            .flat_map(|each| &each.sent)
            .map(|sent| sent.bytes)
            .sum();
        let received: u64 = outcomes
            .iter()
            .map(|each| each.phases[0].report.stages[3].counters.bytes)
            .sum();
        assert!(sent > 0);
        assert_eq!(sent, received);
        for (number, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.phases[0].graph.matches("->").count(), 3);
            assert_eq!(outcome.sent.len(), (endpoints - 1) * connections);
            assert!(
                outcome
                    .sent
                    .iter()
                    .all(|sent| sent.peer != number && sent.bytes > 0)
            );
        }
    }
}

#[test]
fn one_that_does_not_send_receives_all_the_same() {
    let mut configs = configs(3, 2);
    for config in &mut configs[1..] {
        config.sends_to.clear();
    }
    let outcomes: Vec<Outcome> = run_all(&configs)
        .into_iter()
        .map(|outcome| outcome.expect("done"))
        .collect();
    for (number, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.sent.len(), 4);
        assert!(
            outcome
                .sent
                .iter()
                .all(|sent| (sent.bytes > 0) == (number == 0))
        );
        let received = outcome.phases[0].report.stages[3].counters.bytes;
        let meant: u64 = outcomes[0]
            .sent
            .iter()
            .filter(|sent| sent.peer == number)
            .map(|sent| sent.bytes)
            .sum();
        assert_eq!(received, meant);
    }
}

/// Nothing goes to endpoint 1 for longer than the run; returns what 0 has sent to it and to 2.
fn beside_a_slow_one(evenly: bool) -> (u64, u64) {
    let mut configs = configs(3, 1);
    for config in &mut configs {
        config.sends_to.retain(|_| config.mesh.number == 0);
        config.evenly = evenly;
        config.seconds = 0.5;
    }
    configs[0].mesh.faults = vec![Fault {
        to: 1,
        after_bytes: 20_000,
        effect: Effect::Stall {
            milliseconds: 1_000,
        },
    }];
    let sent = run_all(&configs).remove(0).expect("done").sent;
    (sent[0].bytes, sent[1].bytes)
}

#[test]
fn only_evenly_does_a_slow_peer_hold_up_the_others() {
    let (slow, other) = beside_a_slow_one(true);
    assert!(other <= slow + 40_000, "{slow} {other}");
    let (slow, other) = beside_a_slow_one(false);
    assert!(other > 10 * slow, "{slow} {other}");
}

#[test]
fn one_sends_to_whom_it_is_told_to() {
    let mut configs = configs(3, 2);
    for config in &mut configs {
        config.sends_to.retain(|&to| to == 2);
    }
    for (number, outcome) in run_all(&configs).into_iter().enumerate() {
        let outcome = outcome.expect("done");
        for sent in &outcome.sent {
            assert_eq!(sent.bytes > 0, sent.peer == 2, "{number}: {sent:?}");
        }
        let received = outcome.phases[0].report.stages[3].counters.bytes;
        assert_eq!(received > 0, number == 2);
    }
}

#[test]
fn a_lost_endpoint_is_named_by_those_that_remain() {
    let mut configs = configs(3, 1);
    let cut = |to| Fault {
        to,
        after_bytes: 50_000,
        effect: Effect::Cut,
    };
    configs[1].mesh.faults = vec![cut(0), cut(2)];
    for config in &mut configs {
        config.seconds = 30.0; // It ends when the fault does, also on a machine that is busy.
    }
    for (number, outcome) in run_all(&configs).into_iter().enumerate() {
        let Err(JobError::Failed { what, stage, .. }) = outcome else {
            panic!("{number}: {outcome:?}");
        };
        assert!(stage.is_some(), "{what}");
        assert!(what.contains("endpoint"), "{what}");
    }
}

#[test]
fn one_endpoint_is_refused() {
    let mut config = configs(1, 1).remove(0);
    assert!(matches!(
        run(&config, &RunHandle::default()),
        Err(JobError::Refused { .. })
    ));
    let mut itself = configs(2, 1).remove(0);
    itself.sends_to = vec![0];
    assert!(matches!(
        run(&itself, &RunHandle::default()),
        Err(JobError::Refused { .. })
    ));
    config.seconds = -1.0;
    assert!(matches!(
        run(&config, &RunHandle::default()),
        Err(JobError::Refused { .. })
    ));
}

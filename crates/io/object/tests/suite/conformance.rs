//! Conformance of stores: the same calls to a real server and to the null store.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use tonnage_object::{
    Client, Effect, Engine, ErrorKind, Faults, Method, ObjectError, RequestCounts, Rule, Settings,
};

use crate::common::{BUCKET, Server, bytes};

const PART_BYTES: usize = 5 << 20;

fn running() -> bool {
    false
}

fn null() -> Settings {
    Settings {
        bucket: BUCKET.to_owned(),
        engine: Engine::Null,
        ..Settings::default()
    }
}

/// Checks what holds for any store, and contents only of those that keep what is put.
fn conforms(settings: &Settings, keeps: bool) {
    let client = Client::new(settings).expect("a client");
    let whole = bytes(1, 3_000_000);
    let put = client
        .put("at/one", whole.clone().into(), running)
        .expect("put");
    assert_eq!(
        (put.bytes, put.first_byte, put.requests),
        (whole.len(), None, 1)
    );

    let mut memory = vec![1; 1_000_000];
    let got = client
        .get_range("at/one", None, 500_000, &mut memory, running)
        .expect("got");
    assert_eq!((got.bytes, got.requests), (memory.len(), 1));
    assert!(got.first_byte.is_some_and(|first| first <= got.took));
    match keeps {
        true => assert!(memory == whole[500_000..1_500_000]),
        false => assert!(memory.iter().all(|byte| *byte == 0)),
    }

    let upload = client.begin_upload("at/two", running).expect("begun");
    let parts = [bytes(2, PART_BYTES), bytes(3, 100)];
    let mut made = Vec::new();
    // In any order: by another client, the second first.
    for number in [1, 0] {
        let other = Client::new(settings).expect("a client");
        let payload = Bytes::from(parts[number].clone());
        let (part, done) = other
            .put_part(&upload, number, payload, running)
            .expect("put");
        assert_eq!((done.bytes, done.requests), (parts[number].len(), 1));
        made.push(part);
    }
    made.reverse();
    let len = PART_BYTES + 100;
    client
        .complete(&upload, len as u64, made, running)
        .expect("completed");
    let mut memory = vec![1; len];
    client
        .get_range("at/two", None, 0, &mut memory, running)
        .expect("got");
    assert!(!keeps || memory == parts.concat());

    let mut found = client.list("at").expect("listed");
    found.sort_unstable_by(|one, two| one.key.cmp(&two.key));
    let mut listed = found.iter().map(|found| (found.key.as_str(), found.bytes));
    if keeps {
        assert_eq!(listed.next(), Some(("at/one", whole.len() as u64)));
        assert_eq!(listed.next(), Some(("at/two", len as u64)));
        assert_eq!(client.find("at/two").expect("asked").as_ref(), found.last());
        assert_eq!(client.find("at/never").expect("asked"), None);
    }
    assert_eq!(listed.next(), None);

    let given_up = client.begin_upload("at/three", running).expect("begun");
    let begun = |folder: &str| {
        let uploads = client.uploads(folder).expect("listed").expect("told");
        uploads.into_iter().map(|upload| upload.key).collect()
    };
    let expected: Vec<&str> = if keeps { vec!["at/three"] } else { vec![] };
    let found: Vec<String> = begun("at");
    assert_eq!(found, expected);
    assert_eq!(begun("elsewhere"), Vec::<String>::new());
    client.abort(&given_up).expect("given up");
    assert_eq!(begun("at"), Vec::<String>::new());
    for key in ["at/one", "at/two", "at/never"] {
        client.remove(key).expect("removed");
    }
    assert_eq!(client.list("at").expect("listed"), []);
    let RequestCounts {
        retries, errors, ..
    } = client.counts();
    let missing = BTreeMap::from([(ErrorKind::Missing, 1)]);
    assert_eq!(retries, 0);
    assert_eq!(errors, if keeps { missing } else { BTreeMap::new() });
}

#[test]
fn the_store_that_is_not_there_conforms() {
    conforms(&null(), false);
}

#[test]
fn a_real_store_conforms() {
    if let Some(server) = Server::start(&[]) {
        conforms(&server.settings(), true);
    }
}

#[test]
fn any_range_is_the_object_s_own() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let client = Client::new(&server.settings()).expect("a client");
    let whole = bytes(4, 300_000);
    client
        .put("whole", whole.clone().into(), running)
        .expect("put");
    proptest!(ProptestConfig::with_cases(64), |(at in 0_usize..300_000, len in 1_usize..300_000)| {
        let end = (at + len).min(whole.len());
        let mut memory = vec![0; end - at];
        client.get_range("whole", None, at as u64, &mut memory, running).expect("got");
        prop_assert!(memory == whole[at..end]);
    });
}

#[test]
fn a_list_of_several_pages_is_whole() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let client = Client::new(&server.settings()).expect("a client");
    for number in 0..1001 {
        client
            .put(&format!("many/{number}"), Bytes::new(), running)
            .expect("put");
    }
    assert_eq!(client.list("many").expect("listed").len(), 1001);
    assert_eq!(client.list("man").expect("listed"), []);
    let counts = client.counts();
    assert_eq!((counts.retries, counts.errors.len()), (0, 0));
}

#[test]
fn all_uploads_of_a_folder_can_be_given_up_whatever_its_name_and_when_answers_fail() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let folder = "many & \"all\"";
    let client = Client::new(&server.settings()).expect("a client");
    for number in 0..1001 {
        let key = format!("{folder}/{number}");
        client.begin_upload(&key, running).expect("begun");
    }
    let rules = [Effect::Status { status: 503 }, Effect::Cut, Effect::Short].map(|effect| Rule {
        probability: Some(0.2),
        ..Rule::new(Method::Get, effect)
    });
    let faults = Faults {
        seed: 1,
        rules: rules.to_vec(),
    };
    let client = Client::new(&Settings {
        faults: Some(faults),
        retries: 20,
        ..server.settings()
    });
    let client = client.expect("a client");
    let first = || client.uploads(folder).expect("listed").expect("told");
    let mut seen = Vec::new();
    for pages in [1000, 1, 0] {
        let uploads = first();
        assert_eq!(uploads.len(), pages);
        for upload in uploads {
            client.abort(&upload).expect("given up");
            seen.push(upload.key);
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 1001);
}

#[test]
fn an_object_that_ends_before_is_an_error() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let client = Client::new(&server.settings()).expect("a client");
    client
        .put("short", bytes(5, 100).into(), running)
        .expect("put");
    let said = client
        .get_range("short", None, 50, &mut [0; 100], running)
        .expect_err("too short");
    assert!(
        said.to_string()
            .contains("s3://tests/short: only 50 of 100 bytes arrived"),
        "{said}"
    );
}

/// Why a first request fails.
fn first_error(settings: &Settings) -> (ErrorKind, String) {
    let client = Client::new(settings).expect("a client");
    match client.list("at") {
        Err(ObjectError::Failed { kind, what, .. }) => (kind, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_is_not_let_in_is_told_why() {
    let unreachable = Settings {
        endpoint: Some("http://127.0.0.1:9".to_owned()),
        retries: 1,
        keys: Some(tonnage_object::Keys {
            id: "a".to_owned(),
            secret: "b".to_owned(),
        }),
        ..null()
    };
    let (kind, what) = first_error(&Settings {
        engine: Engine::S3,
        ..unreachable
    });
    assert_eq!(kind, ErrorKind::Unreachable);
    assert!(what.contains("refused"), "{what}");

    let Some(server) = Server::start(&[]) else {
        return;
    };
    let mut wrong = server.settings();
    wrong.bucket = "nowhere".to_owned();
    let (kind, what) = first_error(&wrong);
    assert_eq!(kind, ErrorKind::Missing);
    assert!(what.starts_with("NoSuchBucket"), "{what}");

    let mut wrong = server.settings();
    wrong.keys.as_mut().expect("keys").secret = "another".to_owned();
    let (kind, what) = first_error(&wrong);
    assert_eq!(kind, ErrorKind::Denied);
    assert!(what.starts_with("SignatureDoesNotMatch"), "{what}");
}

#[test]
fn who_stops_waits_no_longer() {
    let Some(server) = Server::start(&["-first-byte", "1h"]) else {
        return;
    };
    let client = Client::new(&server.settings()).expect("a client");
    let stopped = client.get_range("slow", None, 0, &mut [0; 100], || true);
    assert!(matches!(stopped, Err(ObjectError::Stopped)), "{stopped:?}");
}

#[test]
fn settings_that_cannot_be_used_are_told() {
    for (settings, part) in [
        (
            Settings {
                patience_seconds: -1.0,
                ..null()
            },
            "patience",
        ),
        (
            Settings {
                bucket: String::new(),
                ..null()
            },
            "s3://",
        ),
    ] {
        // An empty name is found when the address is made from it, by the client or by its use.
        let said = Client::new(&settings).map(|client| client.list("at").map(drop));
        match said {
            Err(why) => assert!(why.to_string().contains(part), "{why}"),
            Ok(used) => assert!(used.is_err() || settings.engine == Engine::Null),
        }
    }
}

#[test]
fn what_was_sent_is_waited_for_though_it_is_to_stop() {
    let Some(server) = Server::start(&["-first-byte", "300ms"]) else {
        return;
    };
    let client = Client::new(&server.settings()).expect("a client");
    let put = client.put("late", bytes(6, 100).into(), || true);
    assert_eq!(put.expect("put").requests, 1);
    assert_eq!(client.list("late").expect("listed"), []); // it is no folder
    client
        .get_range("late", None, 0, &mut [0; 100], running)
        .expect("there");
}

#[test]
fn an_object_that_is_another_one_now_is_told_from_the_one_that_was_found() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let client = Client::new(&server.settings()).expect("a client");
    let put = |seed| {
        client
            .put("at/it", bytes(seed, 1000).into(), running)
            .expect("put");
    };
    put(1);
    let etag = client.list("at").expect("listed").remove(0).etag;
    let get = || client.get_range("at/it", etag.as_deref(), 10, &mut [0; 100], running);
    assert!(etag.is_some() && get().is_ok());
    put(2);
    match get() {
        Err(ObjectError::Failed { kind, .. }) => assert_eq!(kind, ErrorKind::Changed),
        other => panic!("{other:?}"),
    }
}

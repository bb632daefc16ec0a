//! The port's contract, for the map and for LevelDB.

use super::{NOW, SMALL, delete, open, put};
use artoo_memory::kv::{Batch, InMemoryKv, Kv, KvError, LevelKv};
use proptest::prelude::*;

fn with_both(check: impl Fn(&dyn Kv)) {
    check(&InMemoryKv::new());
    let folder = tempfile::tempdir().unwrap();
    check(&open(&folder.path().join("memory.leveldb")));
}

fn keys(kv: &dyn Kv, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    let pairs = kv.scan(prefix.as_bytes(), after.map(str::as_bytes), limit).unwrap();
    pairs
        .into_iter()
        .map(|(key, _)| String::from_utf8(key).unwrap())
        .collect()
}

#[test]
fn reads_see_what_was_applied_before() {
    with_both(|kv| {
        assert_eq!(kv.get(b"a").unwrap(), None);
        kv.apply(put("a", "1")).unwrap();
        assert_eq!(kv.get(b"a").unwrap(), Some(b"1".to_vec()));
        kv.apply(put("a", "2")).unwrap();
        kv.apply(put("b", "")).unwrap();
        let many = kv.get_many(&[b"b".to_vec(), b"none".to_vec(), b"a".to_vec()]).unwrap();
        assert_eq!(many, [Some(vec![]), None, Some(b"2".to_vec())]);
        kv.apply(delete("a")).unwrap();
        kv.apply(delete("never there")).unwrap();
        assert_eq!(kv.get(b"a").unwrap(), None);
    });
}

#[test]
fn of_two_changes_of_one_key_in_a_batch_the_later_counts() {
    with_both(|kv| {
        let mut batch = put("a", "1");
        batch.delete("a");
        batch.delete("b");
        batch.put("b", "2");
        kv.apply(batch).unwrap();
        assert_eq!(
            kv.get_many(&[b"a".to_vec(), b"b".to_vec()]).unwrap(),
            [None, Some(b"2".to_vec())]
        );
    });
}

#[test]
fn scans_are_ordered_limited_and_stay_within_the_prefix() {
    with_both(|kv| {
        for key in ["x|b", "x|a", "w|z", "x|c", "x", "y|a", "x|b|deep"] {
            kv.apply(put(key, "v")).unwrap();
        }
        assert_eq!(keys(kv, "x|", None, 9), ["x|a", "x|b", "x|b|deep", "x|c"]);
        assert_eq!(keys(kv, "x|", None, 2), ["x|a", "x|b"]);
        assert_eq!(keys(kv, "x|", Some("x|b"), 9), ["x|b|deep", "x|c"]);
        assert_eq!(keys(kv, "x|", Some("x|b|z"), 1), ["x|c"]);
        assert_eq!(
            keys(kv, "x|", Some("a"), 1),
            ["x|a"],
            "a start before the prefix means its beginning"
        );
        assert_eq!(keys(kv, "x|", Some("z"), 1), [""; 0]);
        assert_eq!(keys(kv, "", None, 99).len(), 7);
        assert_eq!(keys(kv, "x|", None, 0), [""; 0]);
    });
}

#[test]
fn large_values_and_keys_of_any_bytes_survive() {
    with_both(|kv| {
        let value: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
        let key = vec![0, 0xff, b'|', 0x80];
        let mut batch = Batch::new();
        batch.put(key.clone(), value.clone());
        kv.apply(batch).unwrap();
        kv.flush().unwrap();
        assert_eq!(kv.get(&key).unwrap(), Some(value));
    });
}

#[test]
fn an_empty_key_is_refused_and_changes_nothing() {
    with_both(|kv| {
        let mut batch = put("a", "1");
        batch.put("", "1");
        assert_eq!(kv.apply(batch), Err(KvError::EmptyKey));
        assert_eq!(kv.get(b"a").unwrap(), None);
    });
}

#[test]
fn a_closed_store_says_so() {
    with_both(|kv| {
        kv.apply(put("a", "1")).unwrap();
        kv.close().unwrap();
        assert_eq!(kv.get(b"a"), Err(KvError::Closed));
        assert_eq!(kv.apply(put("a", "1")), Err(KvError::Closed));
        assert_eq!(kv.flush(), Err(KvError::Closed));
        assert_eq!(kv.close(), Err(KvError::Closed));
    });
}

#[test]
fn many_writers_at_once_lose_nothing() {
    with_both(|kv| {
        std::thread::scope(|scope| {
            for writer in 0..16 {
                scope.spawn(move || {
                    for number in 0..50 {
                        kv.apply(put(&format!("{writer}|{number}"), "v")).unwrap();
                        kv.flush().unwrap();
                    }
                });
            }
        });
        assert_eq!(kv.scan(b"", None, usize::MAX).unwrap().len(), 800);
    });
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u16),
    Delete(u8),
    Fill(u8),
    Flush,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u8>(), 0..2000_u16).prop_map(|(key, size)| Step::Put(key, size)),
        6 => any::<u8>().prop_map(Step::Delete),
        2 => any::<u8>().prop_map(Step::Fill),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Through compactions and reopenings, LevelDB answers like a map.
    #[test]
    fn level_db_behaves_like_a_map(steps in prop::collection::vec(step(), 1..120)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.leveldb");
        let model = InMemoryKv::new();
        let mut kv = open(&path);
        for step in steps {
            let mut batch = Batch::new();
            match step {
                Step::Put(key, size) => batch.put([b'k', key], vec![key; size.into()]),
                Step::Delete(key) => batch.delete([b'k', key]),
                Step::Fill(start) => (start..start.saturating_add(40)).for_each(|key| batch.put([b'k', key], [key; 500])),
                Step::Flush => kv.flush().unwrap(),
                Step::Reopen => {
                    kv.close().unwrap();
                    kv = LevelKv::open(&path, NOW, SMALL).unwrap();
                }
            }
            model.apply(batch.clone()).unwrap();
            kv.apply(batch).unwrap();
        }
        let expect = model.scan(b"", None, usize::MAX).unwrap();
        prop_assert_eq!(kv.scan(b"", None, usize::MAX).unwrap(), expect.clone());
        let keys: Vec<_> = expect.iter().map(|(key, _)| key.clone()).collect();
        let values: Vec<_> = expect.into_iter().map(|(_, value)| Some(value)).collect();
        prop_assert_eq!(kv.get_many(&keys).unwrap(), values);
        prop_assert_eq!(kv.take_notices(), []);
    }
}

#[test]
fn a_batch_that_would_not_be_read_back_is_refused_by_name_and_nothing_of_it_is_written() {
    use artoo_memory::kv::BATCH_MAX;
    with_both(|kv| {
        let mut batch = put("a", "1");
        batch.put("large", vec![7; BATCH_MAX]);
        let Err(KvError::TooLarge { bytes }) = kv.apply(batch) else {
            panic!()
        };
        assert!(bytes > BATCH_MAX);
        assert_eq!(kv.scan(b"", None, 9).unwrap(), []);
        kv.apply(put("a", "1")).unwrap();
    });
}

#[test]
fn a_batch_in_parts_is_the_same_changes_in_the_same_order() {
    let mut batch = Batch::new();
    for number in 0..100 {
        batch.put(format!("{number:03}"), vec![0; if number == 50 { 5_000 } else { 90 }]);
        batch.delete(format!("{number:03}x"));
    }
    let parts = batch.clone().into_parts(1_000);
    assert!(
        parts.len() > 10
            && parts
                .iter()
                .all(|part| part.bytes() <= 1_000 || part.changes.len() == 1)
    );
    let together: Vec<_> = parts.into_iter().flat_map(|part| part.changes).collect();
    assert_eq!(together, batch.changes);
    assert_eq!(Batch::new().into_parts(9), []);
}

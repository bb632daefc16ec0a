//! Order and loss on the hub itself.

use artoo_bus::{Gap, Inbox, Notice, TapItem};
use artoo_protocol::ports::Bus;
use artoo_protocol::{Message, Role, route};
use proptest::prelude::*;

use crate::toys::{aborted, final_result, named, stage, subtask, task_spec, tell, user_input};

fn seqs(inbox: &mut Inbox) -> Vec<u64> {
    std::iter::from_fn(|| inbox.try_recv())
        .map(|envelope| envelope.seq)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_a_thousand_subtasks_is_delivered_whole() {
    let stage = stage(None, 10_000);
    let mut slow = stage.hub.tap("slow", 10);
    for n in 0..1_000 {
        tell(&stage.hub, Role::R2, subtask(n));
    }
    for role in [Role::R3, Role::R4a] {
        let mut inbox = stage.hub.inbox(role).unwrap();
        assert_eq!(seqs(&mut inbox), (1..=1_000).collect::<Vec<_>>(), "{role}");
    }
    let mut seen = Vec::new();
    for _ in 0..10 {
        let Some(TapItem::Envelope(envelope)) = slow.recv().await else {
            panic!("the first ten are there")
        };
        seen.push(envelope.seq);
    }
    assert_eq!(seen, (1..=10).collect::<Vec<_>>());
    let gap = Gap {
        from_seq: 11,
        to_seq: 1_000,
        count: 990,
        deeds: 0,
    };
    assert_eq!(
        slow.recv().await,
        Some(TapItem::Gap(gap)),
        "nothing is missed in silence"
    );
    assert_eq!(slow.dropped(), 990);
    let told: Vec<_> = stage.notices.lock().unwrap().clone();
    assert_eq!(
        told,
        [Notice::TapDropping {
            tap: "slow".into(),
            from_seq: 11
        }]
    );
    drop(stage);
    assert_eq!(slow.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn what_no_route_allows_is_not_said() {
    let stage = stage(None, 10);
    let mut tap = stage.hub.tap("all", 10);
    let error = stage.hub.publish(Role::R3, Some(&named()), final_result()).unwrap_err();
    assert_eq!(error.to_string(), "R3 may not send FinalResult");
    tell(&stage.hub, Role::R2, subtask(0));
    let Some(TapItem::Envelope(first)) = tap.try_recv() else {
        panic!("one message")
    };
    assert_eq!(first.seq, 1, "a refused message takes no number");
}

#[tokio::test(start_paused = true)]
async fn a_growing_inbox_is_reported_once_per_crossing() {
    let stage = stage(None, 10);
    let alarms = || {
        let told = stage.notices.lock().unwrap();
        told.iter()
            .filter(|n| matches!(n, Notice::InboxAlarm { role: Role::R3, .. }))
            .count()
    };
    let mut inbox = stage.hub.inbox(Role::R3).unwrap();
    for n in 0..30 {
        tell(&stage.hub, Role::R2, subtask(n));
    }
    assert_eq!(alarms(), 1);
    assert_eq!(seqs(&mut inbox).len(), 30);
    for n in 0..11 {
        tell(&stage.hub, Role::R2, subtask(n));
    }
    assert_eq!(alarms(), 2);
}

#[test]
fn threads_that_publish_together_are_put_in_one_order() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _context = runtime.enter();
    let stage = stage(None, 100_000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|n| tell(&stage.hub, Role::R2, subtask(n))));
        }
    });
    for role in [Role::R3, Role::R4a] {
        assert_eq!(
            seqs(&mut stage.hub.inbox(role).unwrap()),
            (1..=2_000).collect::<Vec<_>>()
        );
    }
}

fn message() -> impl Strategy<Value = (Role, Message)> {
    prop_oneof![
        Just((Role::User, user_input("x"))),
        Just((Role::R1, task_spec())),
        (0..9_u64).prop_map(|n| (Role::R2, subtask(n))),
        Just((Role::User, aborted())),
        Just((Role::R7, final_result())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However messages and readings are mixed: inboxes get all of theirs in order, and a tap's messages and gaps
    /// together are every number exactly once.
    #[test]
    fn inboxes_lose_nothing_and_taps_hide_nothing(
        said in proptest::collection::vec((message(), 0..3_usize), 1..60),
        capacity in 1..6_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _context = runtime.enter();
        let stage = stage(None, 1_000);
        let mut tap = stage.hub.tap("t", capacity);
        let mut seen = Vec::new();
        let mut dropped = 0;
        let mut take = |item: TapItem| match item {
            TapItem::Envelope(envelope) => seen.push(envelope.seq),
            TapItem::Deed(deed) => panic!("not asked for: {deed:?}"),
            TapItem::Gap(gap) => {
                assert_eq!(gap.count, gap.to_seq - gap.from_seq + 1);
                dropped += gap.count;
                seen.extend(gap.from_seq..=gap.to_seq);
            }
        };
        for ((from, message), reads) in &said {
            tell(&stage.hub, *from, message.clone());
            (0..*reads).filter_map(|_| tap.try_recv()).for_each(&mut take);
        }
        std::iter::from_fn(|| tap.try_recv()).for_each(&mut take);
        prop_assert_eq!(seen, (1..=said.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(tap.dropped(), dropped);
        for role in Role::ALL {
            let expect: Vec<u64> = (1..).zip(&said)
                .filter(|(_, ((from, message), _))| {
                    route(message.kind(), *from).is_some_and(|r| r.to == role || r.copies.contains(&role))
                })
                .map(|(seq, _)| seq)
                .collect();
            prop_assert_eq!(seqs(&mut stage.hub.inbox(role).unwrap()), expect);
        }
    }
}

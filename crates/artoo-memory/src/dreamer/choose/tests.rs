//! The policy, row by row, and what holds whatever memory contains.

use super::*;
use crate::dreamer::carry;
use crate::potentials::{Later, living, potentials};
use crate::testing::{at, megram};
use artoo_protocol::message::Megram;
use artoo_protocol::{DecayPerDay, Magnitude, Valence};
use proptest::prelude::*;

const DAY: u64 = 86_400_000;

fn key(space: &str) -> GroupKey {
    GroupKey {
        space: space.to_owned(),
        entity: "env:local".to_owned(),
    }
}

fn entry_of(megram: &Megram) -> Entry {
    let words = megram
        .content
        .bytes()
        .fold(7_u64, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte));
    Entry {
        id: megram.id.clone(),
        level: megram.level,
        created_at: megram.created_at,
        state: megram.state,
        f: megram.f,
        sigma: megram.sigma,
        k: megram.k,
        words,
    }
}

/// The group as the store shows it: what counts, and what its living rules were made of.
fn group_of(space: &str, all: &[Megram]) -> Group {
    let alive = living(all.to_vec());
    let evidence: Vec<&MegramId> = alive.iter().flat_map(|megram| &megram.sources).collect();
    Group {
        key: key(space),
        entries: alive.iter().map(entry_of).collect(),
        known: all
            .iter()
            .filter(|megram| evidence.contains(&&megram.id))
            .map(|megram| entry_of(megram).words)
            .collect(),
    }
}

fn chosen(all: &[Megram], now: Timestamp) -> Vec<Action> {
    let view = View {
        groups: vec![group_of("intent:count_the_files", all)],
    };
    choose(&view, now, &Params::default())
}

/// Carries the actions out on plain records, as the shell does on the store.
fn carried_out(mut all: Vec<Megram>, actions: &[Action], now: Timestamp) -> Vec<Megram> {
    let find = |all: &[Megram], id: &MegramId| all.iter().find(|megram| megram.id == *id).cloned();
    for action in actions {
        match action {
            Action::Forget { id, .. } => {
                let replaced = find(&all, id).and_then(|megram| megram.supersedes);
                all.retain(|megram| megram.id != *id && Some(&megram.id) != replaced.as_ref());
            }
            Action::Demote { id, .. } => all.push(carry::demoted(&find(&all, id).unwrap(), now)),
            Action::Promote { id } => all.push(carry::promoted(&find(&all, id).unwrap(), now)),
            Action::Fold { ids, level } => {
                let alike: Vec<Megram> = ids.iter().map(|id| find(&all, id).unwrap()).collect();
                let folded = crate::folding::folded(&alike, *level, now).unwrap();
                all.retain(|megram| Some(&megram.id) == folded.supersedes.as_ref() || !ids.contains(&megram.id));
                all.push(folded);
            }
            Action::Consolidate(consolidation) => {
                let before = consolidation.supersedes.as_ref().and_then(|id| find(&all, id));
                let inherited = before.map(|rule| rule.sources).unwrap_or_default();
                all.push(carry::rule(consolidation, &inherited, "the rule", now));
            }
        }
    }
    all
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small and positive"
)]
fn later(days: f64) -> Timestamp {
    at().plus(Millis((days * DAY as f64) as u64))
}

/// An event made at [`at`]: a row of the controller's matrix.
fn event(id: &str, state: MacroState) -> Megram {
    let (f, sigma, k) = match state {
        MacroState::Abandon => (0.95, -1.0, 0.05),
        MacroState::Accept | MacroState::Remember => (0.90, 1.0, 0.05),
        MacroState::ChangeApproach => (0.85, -1.0, 0.05),
        MacroState::Success => (0.80, 1.0, 0.05),
        MacroState::BreakSymmetry => (0.75, 1.0, 0.05),
        MacroState::ChangePath => (0.30, 0.0, 0.2),
        MacroState::Refine => (0.10, 0.5, 0.5),
    };
    let mut event = megram(id, "intent:count_the_files", "env:local", f, sigma);
    event.state = state;
    event.k = DecayPerDay::new(k).unwrap();
    event
}

fn rule(id: &str, sigma: f64) -> Megram {
    let mut rule = event(id, MacroState::Accept);
    rule.level = Level::C;
    rule.f = Magnitude::ONE;
    rule.sigma = Valence::new(sigma).unwrap();
    rule.k = DecayPerDay::ZERO;
    rule
}

fn promoted(ids: &[&str]) -> Vec<Action> {
    ids.iter()
        .map(|id| Action::Promote { id: MegramId::new(*id) })
        .collect()
}

fn forgotten(actions: &[Action]) -> Vec<(&str, Faded)> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Forget { id, why } => Some((id.as_str(), *why)),
            Action::Demote { .. } | Action::Promote { .. } | Action::Fold { .. } | Action::Consolidate(_) => None,
        })
        .collect()
}

#[test]
fn what_says_the_same_becomes_one_entry_after_a_day() {
    let said = |id: &str, days: f64, words: &str| {
        let mut event = event(id, MacroState::Accept);
        (event.created_at, event.content) = (later(days), words.to_owned());
        event
    };
    let all = [
        said("1", 0.0, "the same"),
        said("2", 10.0, "the same"),
        said("3", 20.0, "the same"),
        said("4", 20.0, "another"),
        said("5", 20.9, "the same"),
    ];
    let now = later(21.5);
    let actions = chosen(&all, now);
    let fold = Action::Fold {
        ids: ["1", "2", "3"].map(MegramId::new).to_vec(),
        level: Level::M,
    };
    assert_eq!(
        actions,
        [vec![fold], promoted(&["5", "4"])].concat(),
        "the youngest is left out"
    );
    let once = carried_out(all.to_vec(), &actions, now);
    let folded = once.iter().find(|megram| megram.f.get() > 1.0).unwrap();
    // 0.9·(e^(−1) + e^(−0.5) + 1)
    assert!((folded.f.get() - 1.776_969).abs() < 1e-6, "{}", folded.f);
    assert_eq!(
        (folded.created_at, folded.supersedes.clone()),
        (later(20.0), Some(MegramId::new("3")))
    );
    // A day later they are one piece of knowledge.
    let next = chosen(&once, later(23.0));
    let [Action::Fold { ids, level: Level::K }] = next.as_slice() else {
        panic!("{next:?}")
    };
    assert_eq!(ids.len(), 2);
}

#[test]
fn the_evidence_of_a_rule_to_come_is_left_whole_while_there_is_a_model() {
    let said_again = |id: usize| Megram {
        content: "the same".to_owned(),
        ..event(&id.to_string(), MacroState::Accept)
    };
    let all: Vec<Megram> = (0..6).map(said_again).collect();
    let run = |words_rules| {
        let view = View {
            groups: vec![group_of("intent:count_the_files", &all)],
        };
        let params = Params {
            words_rules,
            ..Params::default()
        };
        choose(&view, later(1.0), &params)
    };
    let is_fold = |action: &Action| matches!(action, Action::Fold { .. });
    assert!(!run(true).iter().any(is_fold), "{:?}", run(true));
    assert_eq!(run(false).iter().filter(|action| is_fold(action)).count(), 1);
}

#[test]
fn one_good_ending_is_knowledge_and_a_failure_needs_a_second() {
    use MacroState::{Abandon, Accept, BreakSymmetry, ChangeApproach, ChangePath, Refine, Remember, Success};
    for (states, expect) in [
        (&[Accept][..], &["0"][..]),
        (&[Success], &["0"]),
        (&[Abandon], &[]),
        (&[ChangeApproach], &[]),
        (&[Abandon, ChangeApproach], &["1", "0"]),
        (&[Abandon, Accept], &["1"]),
        (
            &[BreakSymmetry, BreakSymmetry, ChangePath, ChangePath, Refine, Refine],
            &[],
        ),
        (&[Remember, Remember], &[]),
    ] {
        let events: Vec<Megram> = states
            .iter()
            .enumerate()
            .map(|(i, state)| event(&i.to_string(), *state))
            .collect();
        assert_eq!(chosen(&events, at()), promoted(expect), "{states:?}");
    }
    // A failure that is knowledge already is the first of two.
    let mut known = event("k", Abandon);
    known.level = Level::K;
    assert_eq!(chosen(&[known, event("m", ChangeApproach)], at()), promoted(&["m"]));
}

#[test]
fn of_events_that_say_the_same_only_the_newest_rises() {
    let mut events: Vec<Megram> = (0..3).map(|i| event(&i.to_string(), MacroState::Accept)).collect();
    for (hour, event) in events.iter_mut().enumerate() {
        event.content = "the same words".to_owned();
        event.created_at = at().plus(Millis(hour as u64 * 3_600_000));
    }
    let now = later(0.5);
    assert_eq!(chosen(&events, now), promoted(&["2"]));
    let all = carried_out(events, &promoted(&["2"]), now);
    assert_eq!(chosen(&all, now), [], "knowledge says it already");
}

#[test]
fn a_group_earns_a_rule_exactly_at_its_thresholds() {
    // Six accepts: 5.4 ≥ 5.0. Five and a success: 5.3. Five: 4.5, too little attention.
    let accepts = |n: usize| {
        (0..n)
            .map(|i| event(&i.to_string(), MacroState::Accept))
            .collect::<Vec<_>>()
    };
    let consolidations = |all: &[Megram]| {
        chosen(all, at())
            .into_iter()
            .filter_map(|action| match action {
                Action::Consolidate(consolidation) => Some((consolidation.sign, consolidation.sources.len())),
                Action::Forget { .. } | Action::Demote { .. } | Action::Promote { .. } | Action::Fold { .. } => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(consolidations(&accepts(5)), []);
    assert_eq!(consolidations(&accepts(6)), [(Sign::Practice, 6)]);
    // Ten halves make exactly 5.0, in binary a little less or more.
    let halves = |n: usize, f: f64| {
        let mut all = accepts(n);
        for event in &mut all {
            event.f = Magnitude::new(f).unwrap();
        }
        all
    };
    assert_eq!(consolidations(&halves(50, 0.1)), [(Sign::Practice, 50)]);
    assert_eq!(consolidations(&halves(49, 0.1)), []);
    // Attention alone does not do: 5.4 against 2.85 leaves a decision of 2.55.
    let mut torn = accepts(6);
    torn.extend((6..9).map(|i| event(&i.to_string(), MacroState::Abandon)));
    assert_eq!(consolidations(&torn), []);
    // The same in the other sign, with the contrary one left out of the evidence.
    let mut failed: Vec<Megram> = (0..6).map(|i| event(&i.to_string(), MacroState::Abandon)).collect();
    failed.push(event("good", MacroState::Accept));
    failed.push(event("neutral", MacroState::ChangePath));
    assert_eq!(consolidations(&failed), [(Sign::Constraint, 6)]);
}

/// What a rule is made of stops counting, and what speaks against it does not: six good endings and two bad ones would leave 1 − 1.9.
#[test]
fn a_rule_that_would_be_bankrupt_at_birth_is_not_earned() {
    for (good, bad) in [
        (MacroState::Accept, MacroState::Abandon),
        (MacroState::Abandon, MacroState::Accept),
    ] {
        let torn = |goods: usize, bads: usize| -> Vec<Megram> {
            let endings = (0..goods).map(|_| good).chain((0..bads).map(|_| bad));
            endings
                .enumerate()
                .map(|(number, state)| event(&format!("{number:03}"), state))
                .collect()
        };
        let rules = |all: &[Megram], now| -> Vec<Action> {
            let chosen = chosen(all, now).into_iter();
            chosen
                .filter(|action| matches!(action, Action::Consolidate(_)))
                .collect()
        };
        assert_eq!(rules(&torn(6, 2), at()), [], "{good:?}: -0.9 or -0.8 would be left");
        assert_eq!(rules(&torn(60, 2), at()), [], "{good:?}: however many it is made of");
        let [Action::Consolidate(_)] = rules(&torn(6, 1), at()).as_slice() else {
            panic!("one contrary ending leaves 0.05 or 0.1")
        };
        // Its evidence is the newest 256; what is left of it goes on counting, and for it.
        assert_eq!(rules(&torn(300, 2), at()).len(), 1, "{good:?}");
        // It fades as what speaks against it does, which is not so of what fades faster.
        let mut fast = torn(300, 2);
        for event in fast.iter_mut().take(60) {
            event.k = DecayPerDay::new(0.5).unwrap();
        }
        assert_eq!(
            rules(&fast, at()),
            [],
            "{good:?}: in two weeks only what speaks against it would be left"
        );
    }
}

#[test]
fn a_rule_ends_the_counting_of_its_sources_and_repetitions_earn_no_second_one() {
    let repeat = |from: usize, n: usize, words: &str| {
        (from..from + n)
            .map(|i| {
                let mut event = event(&i.to_string(), MacroState::Accept);
                event.content = words.to_owned();
                event
            })
            .collect::<Vec<_>>()
    };
    let first = repeat(0, 6, "cut fails on quoted commas");
    let actions = chosen(&first, at());
    let mut all = carried_out(first, &actions, at());
    let sum = |all: &[Megram]| {
        potentials(&living(all.to_vec()), at(), Later::CountsAsNew)
            .attention
            .get()
    };
    // The rule itself, and the one event that was promoted in the same pass and is named by the rule under its old id.
    assert!((sum(&all) - 1.9).abs() < 1e-9, "{}", sum(&all));
    all.extend(repeat(10, 6, "cut fails on quoted commas"));
    assert!(
        !chosen(&all, at())
            .iter()
            .any(|action| matches!(action, Action::Consolidate(_))),
        "nothing new is said"
    );
    all.push(event("news", MacroState::Accept));
    let actions = chosen(&all, at());
    let Some(Action::Consolidate(second)) = actions.last() else {
        panic!("{actions:?}")
    };
    assert!(second.supersedes.is_some(), "one rule per group and sign");
}

#[test]
fn a_rule_goes_bankrupt_by_its_own_sign_and_not_by_a_single_contrary_ending() {
    for (sigma, contrary) in [(1.0, MacroState::Abandon), (-1.0, MacroState::Accept)] {
        let mut all = vec![rule("rule", sigma)];
        assert_eq!(chosen(&all, at()), [], "a constraint alone is not bankrupt");
        all.push(event("1", contrary));
        let demotions = |all: &[Megram]| {
            chosen(all, at())
                .iter()
                .filter(|a| matches!(a, Action::Demote { .. }))
                .count()
        };
        assert_eq!(demotions(&all), 0);
        all.push(event("2", contrary));
        assert_eq!(demotions(&all), 1);
    }
}

#[test]
fn a_demoted_rule_fades_from_its_demotion_and_its_old_evidence_does_not_come_back() {
    let sources: Vec<Megram> = (0..6).map(|i| event(&i.to_string(), MacroState::Accept)).collect();
    let actions = chosen(&sources, at());
    let all = carried_out(sources, &actions, at());
    let now = later(100.0);
    let mut all = all;
    for id in ["x", "y", "z"] {
        let mut failed = event(id, MacroState::Abandon);
        failed.created_at = now;
        all.push(failed);
    }
    let actions = chosen(&all, now);
    assert!(
        actions.iter().any(|a| matches!(a, Action::Demote { .. })),
        "{actions:?}"
    );
    let all = carried_out(all, &actions, now);
    let alive = living(all.clone());
    let former = alive.iter().find(|m| m.content == "the rule").unwrap();
    assert_eq!((former.level, former.created_at, former.k.get()), (Level::K, now, 0.05));
    assert!(!alive.iter().any(|m| m.id.as_str() == "0"), "sources stay spent");
    let sum = potentials(&alive, now, Later::CountsAsNew);
    assert!(sum.decision.get() < -0.2, "what failed now decides: {}", sum.decision);
    assert!(
        !chosen(&all, now)
            .iter()
            .any(|a| matches!(a, Action::Consolidate(_) | Action::Demote { .. }))
    );
}

#[test]
fn forgetting_looks_at_the_group_and_never_at_the_first_day() {
    let refine = event("1", MacroState::Refine);
    assert_eq!(
        forgotten(&chosen(std::slice::from_ref(&refine), later(0.9))),
        [],
        "0.10·e^(−0.45) is below 0.1 already"
    );
    assert_eq!(
        forgotten(&chosen(std::slice::from_ref(&refine), later(1.0))),
        [("1", Faded::Group)]
    );
    // Beside a strong neighbour it stays until it adds next to nothing: 0.1·e^(−0.5·9.3) < 0.001.
    let mut strong = event("2", MacroState::Accept);
    strong.level = Level::K;
    let pair = [refine, strong];
    assert_eq!(forgotten(&chosen(&pair, later(9.0))), []);
    assert_eq!(forgotten(&chosen(&pair, later(9.3))), [("1", Faded::Entry)]);
    // A rule keeps its group's attention at 1, so only entries go, and a rule never does.
    let beside_rule = [rule("rule", 1.0), event("3", MacroState::Accept)];
    assert_eq!(forgotten(&chosen(&beside_rule, later(130.0))), []);
    assert_eq!(forgotten(&chosen(&beside_rule, later(137.0))), [("3", Faded::Entry)]);
}

#[test]
fn what_the_person_asked_to_be_remembered_is_nobodys_to_touch() {
    let mut wish = rule("wish", 1.0);
    wish.state = MacroState::Remember;
    let mut group = group_of(
        "user:preference",
        &[
            wish.clone(),
            event("1", MacroState::Abandon),
            event("2", MacroState::Abandon),
        ],
    );
    let run = |group: &Group| {
        let view = View {
            groups: vec![group.clone()],
        };
        choose(&view, later(3_000.0), &Params::default())
    };
    assert_eq!(run(&group), []);
    group.key = key("intent:count_the_files");
    assert_eq!(forgotten(&run(&group)).len(), 2, "elsewhere its neighbours may go");
    assert!(
        !run(&group).iter().any(|a| matches!(a, Action::Demote { .. })),
        "but not the wish"
    );
}

#[test]
fn nothing_is_chosen_where_there_is_nothing() {
    assert_eq!(choose(&View::default(), at(), &Params::default()), []);
    assert_eq!(chosen(&[], at()), []);
}

fn any_state() -> impl Strategy<Value = MacroState> {
    prop::sample::select(vec![
        MacroState::Abandon,
        MacroState::Accept,
        MacroState::ChangeApproach,
        MacroState::Success,
        MacroState::BreakSymmetry,
        MacroState::ChangePath,
        MacroState::Refine,
        MacroState::Remember,
    ])
}

prop_compose! {
    fn any_megram()(
        state in any_state(), level in prop::sample::select(vec![Level::M, Level::K, Level::C]), f in 0.0..=1.0_f64,
        sigma in -1.0..=1.0_f64, k in prop::sample::select(vec![0.0, 0.05, 0.2, 0.5, 3.0]), age in -5_000..4_000_000_i64,
        words in 0_u8..5,
    ) -> Megram {
        let mut megram = event("?", state);
        (megram.level, megram.content) = (level, format!("lesson {words}"));
        megram.f = Magnitude::new(f).unwrap();
        megram.sigma = Valence::new(sigma).unwrap();
        // Rules are timeless as long as they are rules.
        megram.k = DecayPerDay::new(if level == Level::C { 0.0 } else { k }).unwrap();
        megram.created_at = Timestamp::from_millis(at().as_millis() - age * 3_600);
        megram
    }
}

fn any_group() -> impl Strategy<Value = Vec<Megram>> {
    prop::collection::vec(any_megram(), 0..40).prop_map(|mut all| {
        for (number, megram) in all.iter_mut().enumerate() {
            megram.id = MegramId::new(format!("{number:03}"));
        }
        all
    })
}

/// What became of tasks of one kind: mostly one way, of late, and fading at different rates.
fn any_endings() -> impl Strategy<Value = Vec<Megram>> {
    let ending = (
        prop::bool::weighted(0.8),
        prop::sample::select(vec![0.0, 0.05, 0.05, 0.05, 0.2, 0.5]),
        0.0..=1.0_f64,
        -1.0..20.0_f64,
    );
    let endings = (prop::bool::ANY, prop::collection::vec(ending, 6..40));
    endings.prop_map(|(is_good, endings)| {
        let numbered = endings.into_iter().enumerate();
        let made = numbered.map(|(number, (is_usual, k, f, days))| {
            let state = if is_usual == is_good {
                MacroState::Accept
            } else {
                MacroState::Abandon
            };
            let mut event = event(&format!("{number:03}"), state);
            event.f = Magnitude::new(f).unwrap();
            event.k = DecayPerDay::new(k).unwrap();
            #[expect(clippy::cast_possible_truncation, reason = "some days")]
            let millis = (days * DAY as f64) as i64;
            event.created_at = Timestamp::from_millis(at().as_millis() - millis);
            event
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn the_young_the_wishes_and_the_rules_are_never_forgotten(all in any_group()) {
        for action in chosen(&all, at()) {
            let Action::Forget { id, .. } = action else { continue };
            let megram = all.iter().find(|megram| megram.id == id).unwrap();
            prop_assert!(at().since(megram.created_at).0 >= DAY);
            prop_assert!(megram.state != MacroState::Remember && megram.level != Level::C);
        }
    }

    /// Done once, nothing is left to be done but rules to be worded; so a pass that was cut off is finished by the next.
    #[test]
    fn a_pass_leaves_nothing_for_the_next_one(all in any_group()) {
        let steps: Vec<Action> = chosen(&all, at()).into_iter().filter(|a| !matches!(a, Action::Consolidate(_))).collect();
        let once = carried_out(all, &steps, at());
        let again = chosen(&once, at());
        prop_assert!(again.iter().all(|a| matches!(a, Action::Consolidate(_))), "{steps:?} then {again:?}");
    }

    /// A rule that is made stands in the next pass, and in any later one as long as nothing is written.
    #[test]
    fn what_was_made_a_rule_is_never_demoted_without_anything_new(
        all in prop_oneof![1 => any_group(), 3 => any_endings()], evidence_max in prop::sample::select(vec![1_usize, 4, 256]), after in 0.0..400.0_f64,
    ) {
        let choose = |all: &[Megram], now| {
            let view = View { groups: vec![group_of("intent:count_the_files", all)] };
            // Nothing is forgotten: that would be something new.
            choose(&view, now, &Params { evidence_max, forgets: false, consolidate_attention: 2.0, consolidate_decision: 1.0, ..Params::default() })
        };
        let is_rule = |action: &Action| matches!(action, Action::Consolidate(_));
        let steps: Vec<Action> = choose(&all, at()).into_iter().filter(|action| !is_rule(action)).collect();
        let tidied = carried_out(all, &steps, at());
        let earned: Vec<Action> = choose(&tidied, at()).into_iter().filter(is_rule).collect();
        let ruled = carried_out(tidied, &earned, at());
        let made: Vec<&Megram> = ruled.iter().filter(|megram| megram.origin.as_deref() == Some(carry::ORIGIN)).collect();
        prop_assert_eq!(made.len(), earned.len());
        for now in [at(), later(after)] {
            for action in choose(&ruled, now) {
                let is_of = |id: &MegramId| made.iter().any(|rule| rule.id == *id);
                prop_assert!(!matches!(&action, Action::Demote { id, .. } if is_of(id)), "{:?}", action);
            }
        }
    }

    /// Promotion is a change of rank, not of weight.
    #[test]
    fn promotion_changes_no_potential(all in any_group()) {
        let sum = |all: &[Megram]| potentials(&living(all.to_vec()), at(), Later::CountsAsNew);
        let rises: Vec<Action> = chosen(&all, at()).into_iter().filter(|a| matches!(a, Action::Promote { .. })).collect();
        let (before, after) = (sum(&all), sum(&carried_out(all, &rises, at())));
        prop_assert!((before.attention.get() - after.attention.get()).abs() < 1e-9);
        prop_assert!((before.decision.get() - after.decision.get()).abs() < 1e-9);
    }

    /// Folding is a change of number, not of weight, now and ever after.
    #[test]
    fn folding_changes_no_potential(all in any_group(), after in 0.0..400.0_f64) {
        let folds: Vec<Action> = chosen(&all, at()).into_iter().filter(|a| matches!(a, Action::Fold { .. })).collect();
        let folded = carried_out(all.clone(), &folds, at());
        for now in [at(), later(after)] {
            let sum = |all: &[Megram]| potentials(&living(all.to_vec()), now, Later::CountsAsNew);
            let (before, after) = (sum(&all), sum(&folded));
            prop_assert!((before.attention.get() - after.attention.get()).abs() < 1e-9 * 40.0);
            prop_assert!((before.decision.get() - after.decision.get()).abs() < 1e-9 * 40.0);
        }
    }

    /// A choice says nothing twice, and only of what it was shown.
    #[test]
    fn a_choice_is_about_what_it_was_shown_and_the_order_does_not_matter(all in any_group()) {
        let actions = chosen(&all, at());
        let mut ids: Vec<&MegramId> = actions.iter().flat_map(|action| match action {
            Action::Forget { id, .. } | Action::Demote { id, .. } | Action::Promote { id } => std::slice::from_ref(id),
            Action::Fold { ids, .. } => ids,
            Action::Consolidate(_) => &[],
        }).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), count);
        prop_assert!(ids.iter().all(|id| all.iter().any(|megram| megram.id == **id)));
        let mut reversed = all.clone();
        reversed.reverse();
        let sorted = |mut actions: Vec<Action>| { actions.sort_by_key(|action| match action {
            Action::Forget { id, .. } => format!("forget {id}"),
            Action::Demote { id, .. } => format!("demote {id}"),
            Action::Promote { id } => format!("promote {id}"),
            Action::Fold { ids, level } => format!("fold {ids:?} {level:?}"),
            Action::Consolidate(c) => format!("consolidate {:?} {:?}", c.sources, c.sign),
        }); actions.len() };
        prop_assert_eq!(sorted(actions), sorted(chosen(&reversed, at())));
    }
}

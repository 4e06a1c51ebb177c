//! Order, and who is notified of what: tables and whatever the graph.

use super::*;
use proptest::prelude::*;

/// Cases by the numbers of those they need, added and settled as one batch.
fn graph(needs: &[&[usize]]) -> (Graph, Vec<CaseId>, Vec<String>) {
    let mut graph = Graph::default();
    let mut ids: Vec<CaseId> = Vec::new();
    for needs in needs {
        let needs: Vec<CaseId> = needs.iter().map(|need| ids[*need]).collect();
        ids.push(graph.add(&needs));
    }
    let changes = words(&graph.resolve(&ids));
    (graph, ids, changes)
}

fn words(changes: &[Change]) -> Vec<String> {
    let one = |changes: &Change| match changes {
        Change::Ready(case) => format!("ready {}", case.0),
        Change::Blocked { case, by, root } => format!("blocked {} by {} root {}", case.0, by.0, root.0),
        Change::Unused { case, wanted: false } => format!("unused {}", case.0),
        Change::Unused { case, wanted: true } => format!("unused {}, wanted", case.0),
    };
    changes.iter().map(one).collect()
}

#[test]
fn a_case_is_ready_when_all_it_needs_has_passed() {
    let (mut graph, ids, first) = graph(&[&[], &[], &[0, 1, 1], &[2]]);
    assert_eq!(first, ["ready 0", "ready 1"]);
    assert_eq!(words(&graph.finish(ids[0], Completion::Passed)), [""; 0]);
    assert_eq!(words(&graph.finish(ids[1], Completion::Passed)), ["ready 2"]);
    assert_eq!(words(&graph.finish(ids[2], Completion::Passed)), ["ready 3", "unused 0", "unused 1"]);
    assert_eq!(words(&graph.finish(ids[3], Completion::Passed)), ["unused 2", "unused 3"]);
}

#[test]
fn a_failure_blocks_all_that_depends_on_it_and_names_itself_as_the_root() {
    let (mut graph, ids, _) = graph(&[&[], &[0], &[1], &[], &[3]]);
    let changes = words(&graph.finish(ids[0], Completion::Failed));
    assert_eq!(changes, ["blocked 1 by 0 root 0", "blocked 2 by 1 root 0", "unused 0", "unused 1", "unused 2"]);
    assert_eq!(words(&graph.finish(ids[3], Completion::Passed)), ["ready 4"]);
}

#[test]
fn what_a_failed_user_has_used_is_wanted() {
    let (mut graph, ids, _) = graph(&[&[], &[0], &[0]]);
    graph.finish(ids[0], Completion::Passed);
    assert_eq!(words(&graph.finish(ids[1], Completion::Failed)), ["unused 1"]);
    assert_eq!(words(&graph.finish(ids[2], Completion::Passed)), ["unused 0, wanted", "unused 2"]);
}

#[test]
fn a_later_round_counts_on_what_has_passed_and_not_on_what_has_failed() {
    let (mut graph, ids, _) = graph(&[&[], &[], &[0]]);
    graph.finish(ids[0], Completion::Passed);
    graph.finish(ids[1], Completion::Failed);
    graph.finish(ids[2], Completion::Failed);
    let again = graph.add(&[ids[0]]);
    let lost = graph.add(&[ids[1]]);
    let after = graph.add(&[lost]);
    assert_eq!(
        words(&graph.resolve(&[again, lost, after])),
        ["ready 3", "blocked 4 by 1 root 1", "blocked 5 by 4 root 1", "unused 1", "unused 4", "unused 5"]
    );
    assert_eq!(words(&graph.finish(again, Completion::Passed)), ["unused 0, wanted", "unused 3"]);
}

#[test]
fn a_batch_is_put_in_order_and_otherwise_left_as_it_is() {
    let rows: [(&[&[usize]], &[usize]); 4] = [
        (&[&[], &[], &[]], &[0, 1, 2]),
        (&[&[2], &[], &[]], &[2, 0, 1]),
        (&[&[1], &[2], &[3], &[]], &[3, 2, 1, 0]),
        (&[&[1], &[0], &[]], &[1, 0, 2]),
    ];
    for (needs, order) in rows {
        let needs: Vec<Vec<usize>> = needs.iter().map(|needs| needs.to_vec()).collect();
        assert_eq!(needs_first(&needs), order);
    }
}

#[test]
fn what_is_held_when_the_session_ends_is_aborted_in_order() {
    let (mut graph, ids, _) = graph(&[&[], &[0], &[1], &[]]);
    let (waiting, changes) = graph.abort_waiting();
    assert_eq!((waiting, words(&changes)), (vec![ids[1], ids[2]], vec!["unused 1".to_owned(), "unused 2".to_owned()]));
    assert_eq!(words(&graph.finish(ids[0], Completion::Aborted)), ["unused 0"]);
}

#[test]
fn a_chain_of_a_hundred_thousand_ends_without_recursion() {
    let mut graph = Graph::default();
    let mut ids = vec![graph.add(&[])];
    for at in 0..100_000 {
        ids.push(graph.add(&[ids[at]]));
    }
    graph.resolve(&ids);
    let blocked =
        graph.finish(ids[0], Completion::Failed).iter().filter(|changes| matches!(changes, Change::Blocked { .. })).count();
    assert_eq!(blocked, 100_000);
}

proptest! {
    /// Whatever depends on whatever, and however each ends, in any order of ending: no case begins twice or before what
    /// it needs, each begins or is blocked, and what is needed is unused exactly when its last user is over.
    #[test]
    fn every_case_comes_after_what_it_needs_and_exactly_once(
        shape in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 1..40),
        fates in prop::collection::vec(0..8u8, 40),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let mut graph = Graph::default();
        let mut needs: Vec<Vec<CaseId>> = Vec::new();
        let mut ids = Vec::new();
        for edges in &shape {
            let before: Vec<CaseId> = if ids.is_empty() { vec![] } else { edges.iter().map(|edge| *edge.get(&ids)).collect() };
            ids.push(graph.add(&before));
            needs.push(before);
        }
        let mut completions: Vec<Option<Completion>> = vec![None; ids.len()];
        let (mut running, mut started, mut unused) = (Vec::new(), vec![0; ids.len()], vec![0; ids.len()]);
        let mut changes = graph.resolve(&ids);
        let mut picks = picks.iter();
        loop {
            for one in std::mem::take(&mut changes) {
                match one {
                    Change::Ready(case) => {
                        prop_assert!(needs[case.index()].iter().all(|need| completions[need.index()] == Some(Completion::Passed)));
                        started[case.index()] += 1;
                        running.push(case);
                    }
                    Change::Blocked { case, by, root } => {
                        prop_assert!(needs[case.index()].contains(&by));
                        prop_assert_eq!(completions[root.index()], Some(Completion::Failed));
                        prop_assert!(completions[case.index()].is_none());
                        completions[case.index()] = Some(Completion::Skipped);
                        started[case.index()] += 1;
                    }
                    Change::Unused { case, .. } => unused[case.index()] += 1,
                }
            }
            // All changes of one ending are in: an unused case has no open user, and each case without one was reported.
            for (at, id) in ids.iter().enumerate() {
                let users: Vec<usize> = (0..ids.len()).filter(|user| needs[*user].contains(id)).collect();
                let all_over = users.iter().all(|user| completions[*user].is_some());
                prop_assert_eq!(unused[at], usize::from(all_over && completions[at].is_some()), "{}", at);
            }
            let Some(pick) = picks.next().filter(|_| !running.is_empty()) else { break };
            let case = running.swap_remove(pick.index(running.len()));
            let completion = if fates[case.index()] == 0 { Completion::Failed } else { Completion::Passed };
            completions[case.index()] = Some(completion);
            changes = graph.finish(case, completion);
        }
        prop_assert!(running.is_empty());
        prop_assert_eq!(started, vec![1; ids.len()]);
    }
}

impl CaseId {
    /// Its place in the order of additions.
    fn index(self) -> usize {
        self.0 as usize
    }
}

#[test]
fn what_is_over_with_all_its_users_can_be_forgotten() {
    let mut graph = Graph::default();
    let first = graph.add(&[]);
    let user = graph.add(&[first]);
    graph.resolve(&[first, user]);
    graph.finish(first, Completion::Passed);
    assert!(!graph.forget(first), "its user runs");
    graph.finish(user, Completion::Passed);
    assert!(graph.forget(first) && graph.forget(user));
    let next = graph.add(&[]);
    assert_eq!(graph.resolve(&[next]), [Change::Ready(next)]);
    assert!(next > user);
}

//! Order, and who is told of what: tables and whatever the graph.

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
    let news = words(&graph.settle(&ids));
    (graph, ids, news)
}

fn words(news: &[News]) -> Vec<String> {
    let one = |news: &News| match news {
        News::Ready(case) => format!("ready {}", case.0),
        News::Blocked { case, by, root } => format!("blocked {} by {} root {}", case.0, by.0, root.0),
        News::Unused { case, wanted: false } => format!("unused {}", case.0),
        News::Unused { case, wanted: true } => format!("unused {}, wanted", case.0),
    };
    news.iter().map(one).collect()
}

#[test]
fn a_case_is_ready_when_all_it_needs_has_passed() {
    let (mut graph, ids, first) = graph(&[&[], &[], &[0, 1, 1], &[2]]);
    assert_eq!(first, ["ready 0", "ready 1"]);
    assert_eq!(words(&graph.over(ids[0], Verdict::Passed)), [""; 0]);
    assert_eq!(words(&graph.over(ids[1], Verdict::Passed)), ["ready 2"]);
    assert_eq!(words(&graph.over(ids[2], Verdict::Passed)), ["ready 3", "unused 0", "unused 1"]);
    assert_eq!(words(&graph.over(ids[3], Verdict::Passed)), ["unused 2", "unused 3"]);
}

#[test]
fn a_failure_blocks_all_that_depends_on_it_and_names_itself_as_the_root() {
    let (mut graph, ids, _) = graph(&[&[], &[0], &[1], &[], &[3]]);
    let news = words(&graph.over(ids[0], Verdict::Failed));
    assert_eq!(news, ["blocked 1 by 0 root 0", "blocked 2 by 1 root 0", "unused 0", "unused 1", "unused 2"]);
    assert_eq!(words(&graph.over(ids[3], Verdict::Passed)), ["ready 4"]);
}

#[test]
fn what_a_failed_user_has_used_is_wanted() {
    let (mut graph, ids, _) = graph(&[&[], &[0], &[0]]);
    graph.over(ids[0], Verdict::Passed);
    assert_eq!(words(&graph.over(ids[1], Verdict::Failed)), ["unused 1"]);
    assert_eq!(words(&graph.over(ids[2], Verdict::Passed)), ["unused 0, wanted", "unused 2"]);
}

#[test]
fn a_later_round_counts_on_what_has_passed_and_not_on_what_has_failed() {
    let (mut graph, ids, _) = graph(&[&[], &[], &[0]]);
    graph.over(ids[0], Verdict::Passed);
    graph.over(ids[1], Verdict::Failed);
    graph.over(ids[2], Verdict::Failed);
    let again = graph.add(&[ids[0]]);
    let lost = graph.add(&[ids[1]]);
    let after = graph.add(&[lost]);
    assert_eq!(
        words(&graph.settle(&[again, lost, after])),
        ["ready 3", "blocked 4 by 1 root 1", "blocked 5 by 4 root 1", "unused 1", "unused 4", "unused 5"]
    );
    assert_eq!(words(&graph.over(again, Verdict::Passed)), ["unused 0, wanted", "unused 3"]);
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
    let (held, news) = graph.abort_held();
    assert_eq!((held, words(&news)), (vec![ids[1], ids[2]], vec!["unused 1".to_owned(), "unused 2".to_owned()]));
    assert_eq!(words(&graph.over(ids[0], Verdict::Aborted)), ["unused 0"]);
}

#[test]
fn a_chain_of_a_hundred_thousand_ends_without_recursion() {
    let mut graph = Graph::default();
    let mut ids = vec![graph.add(&[])];
    for at in 0..100_000 {
        ids.push(graph.add(&[ids[at]]));
    }
    graph.settle(&ids);
    let blocked = graph.over(ids[0], Verdict::Failed).iter().filter(|news| matches!(news, News::Blocked { .. })).count();
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
        let mut verdicts: Vec<Option<Verdict>> = vec![None; ids.len()];
        let (mut running, mut begun, mut unused) = (Vec::new(), vec![0; ids.len()], vec![0; ids.len()]);
        let mut news = graph.settle(&ids);
        let mut picks = picks.iter();
        loop {
            for one in std::mem::take(&mut news) {
                match one {
                    News::Ready(case) => {
                        prop_assert!(needs[case.index()].iter().all(|need| verdicts[need.index()] == Some(Verdict::Passed)));
                        begun[case.index()] += 1;
                        running.push(case);
                    }
                    News::Blocked { case, by, root } => {
                        prop_assert!(needs[case.index()].contains(&by));
                        prop_assert_eq!(verdicts[root.index()], Some(Verdict::Failed));
                        prop_assert!(verdicts[case.index()].is_none());
                        verdicts[case.index()] = Some(Verdict::Skipped);
                        begun[case.index()] += 1;
                    }
                    News::Unused { case, .. } => unused[case.index()] += 1,
                }
            }
            // All news of one ending are in: who is unused now has no open user, and who has none was told so.
            for (at, id) in ids.iter().enumerate() {
                let users: Vec<usize> = (0..ids.len()).filter(|user| needs[*user].contains(id)).collect();
                let all_over = users.iter().all(|user| verdicts[*user].is_some());
                prop_assert_eq!(unused[at], usize::from(all_over && verdicts[at].is_some()), "{}", at);
            }
            let Some(pick) = picks.next().filter(|_| !running.is_empty()) else { break };
            let case = running.swap_remove(pick.index(running.len()));
            let verdict = if fates[case.index()] == 0 { Verdict::Failed } else { Verdict::Passed };
            verdicts[case.index()] = Some(verdict);
            news = graph.over(case, verdict);
        }
        prop_assert!(running.is_empty());
        prop_assert_eq!(begun, vec![1; ids.len()]);
    }
}

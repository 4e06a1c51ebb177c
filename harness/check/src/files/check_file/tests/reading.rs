use super::*;
use muster_core::rules::perf::{Direction, Reduce};

#[test]
fn the_example_of_the_design_is_read() {
    let (checks, mistakes) = read_all(NBODY, Placeholders::Defer);
    assert_eq!(mistakes, "");
    let [Some(nbody), Some(list)] = &checks[..] else { panic!("{checks:?}") };
    assert_eq!(&*nbody.name.as_ref().unwrap().value.0, "nbody");
    assert_eq!(nbody.tags.as_deref(), Some(&["gpu".to_owned(), "performance".to_owned()][..]));
    assert_eq!(nbody.time_limit, Some(Limit(Some(Duration::from_mins(10)))));
    assert!(nbody.num_tasks.is_none(), "a placeholder waits");
    let env: Vec<_> = nbody.env_vars.as_ref().unwrap().iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(env, [("OMP_NUM_THREADS", "8"), ("VERBOSE", "true")]);

    let when = nbody.when.as_ref().unwrap();
    assert_eq!(when[0].0.num_tasks.map(NonZeroU32::get), Some(4));
    assert_eq!(when[0].0.tags.as_deref(), Some(&["big".to_owned()][..]));
    assert!(when[2].0.perf_variables.as_ref().unwrap().get("flops").unwrap().unit.is_some());

    let perf = nbody.perf_variables.as_ref().unwrap();
    assert_eq!(perf.get("flops").unwrap().reduce.unwrap().value, Reduce::Mean);
    assert_eq!(perf.get("latency").unwrap().direction, Some(Direction::Lower));
    assert_eq!(perf.get("node_flops").unwrap().per.unwrap().value, PerFigure::Section);

    let Some(ReferenceBlock::Scopes(scopes)) = &nbody.reference else { panic!("{:?}", nbody.reference) };
    let here = scopes.get("eidf:gpu-service").unwrap();
    assert_eq!(here.get("flops").unwrap().lower.map(|bound| bound.value), Some(-0.1));
    assert_eq!(here.get("latency[8]").unwrap().warn.unwrap().value, Band(None, Some(0.1)));
    let Some(ReferenceBlock::Rules(rules)) = &list.reference else { panic!("{:?}", list.reference) };
    assert!(rules[0].values.as_ref().unwrap().get("flops").unwrap().upper.is_none());
}

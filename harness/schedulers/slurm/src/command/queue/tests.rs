use super::*;
use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};
use tokio::time::{advance, sleep};

fn id(number: usize) -> Identifier {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    Identifier::parse(&format!("aaaaaa{}{}", letter(number / 26), letter(number))).unwrap()
}

fn key(name: &str) -> LimitKey {
    LimitKey(name.to_owned())
}

async fn turn<'q>(queue: &'q Queue, who: usize, limits: &str) -> Result<Turn<'q>, Delay> {
    queue.turn(&id(who), &key(limits), false, PATIENCE, || false).await
}

#[test]
fn limits_are_those_of_the_options_that_a_script_begins_with() {
    let script = "#!/bin/bash\n#SBATCH --job-name=a\n#SBATCH --account=p\n#SBATCH --qos=q\ncd /\n#SBATCH --qos=late\n";
    assert_eq!(LimitKey::of(script), key("--account=p --qos=q"));
}

/// 85 launches and an sbatch that takes 4 s: the last is submitted after 340 s, in their order, and no launch waits for long.
#[tokio::test(start_paused = true)]
async fn a_slow_sbatch_makes_no_launch_exceed_its_limit_and_the_first_come_is_the_first_served() {
    let (queue, order) = (Arc::new(Queue::default()), Arc::new(Mutex::new(Vec::new())));
    let longest = Arc::new(Mutex::new(Duration::ZERO));
    let launches = (0..85).map(|who| {
        let (queue, order, longest) = (Arc::clone(&queue), Arc::clone(&order), Arc::clone(&longest));
        tokio::spawn(async move {
            sleep(Duration::from_millis(u64::try_from(who).unwrap())).await;
            loop {
                let started = Instant::now();
                let answer = turn(&queue, who, "").await;
                {
                    let mut longest = longest.lock();
                    *longest = started.elapsed().max(*longest);
                }
                match answer {
                    Ok(turn) => {
                        sleep(Duration::from_secs(4)).await;
                        turn.let_in(|| false);
                        order.lock().push(who);
                        return;
                    }
                    Err(delay) => assert_eq!(delay, Delay::Busy),
                }
                // All come back before sbatch has answered once more.
                sleep(Duration::from_millis(100)).await;
            }
        })
    });
    for launch in launches.collect::<Vec<_>>() {
        launch.await.unwrap();
    }
    let order = order.lock();
    let late = order.iter().enumerate().map(|(at, who)| at.abs_diff(*who)).max().unwrap();
    assert!(late <= 1 && order.len() == 85, "{order:?}");
    assert!(*longest.lock() <= PATIENCE, "{longest:?}");
}

/// 500 launches that wait: each asks when it comes, when it looks, and when it is its turn; not with each sbatch.
#[tokio::test(start_paused = true)]
async fn a_submission_is_no_news_for_all_that_wait() {
    let (queue, asked) = (Queue::default(), AtomicUsize::new(0));
    let (limits, launches) = (key(""), 500);
    let ask = || {
        asked.fetch_add(1, Relaxed);
        false
    };
    let one = |who: usize| {
        let (queue, limits) = (&queue, &limits);
        async move {
            let turn = queue.turn(&id(who), limits, false, PATIENCE, ask).await.unwrap();
            sleep(Duration::from_millis(5)).await;
            turn.let_in(|| false);
        }
    };
    futures_util::future::join_all((0..launches).map(one)).await;
    let asked = asked.load(Relaxed);
    assert!(asked <= 3 * launches, "{asked}");
}

/// A site with so many places, and what it was asked.
struct Site {
    places: usize,
    running: RefCell<Vec<(Arc<AtomicBool>, Instant)>>,
    refused: RefCell<usize>,
    accepted: RefCell<usize>,
}

impl Site {
    fn new(places: usize) -> Self {
        Self { places, running: RefCell::default(), refused: RefCell::default(), accepted: RefCell::default() }
    }

    fn end_what_has_ended(&self) {
        self.running.borrow_mut().retain(|(over, ends)| {
            over.store(Instant::now() >= *ends, Relaxed);
            Instant::now() < *ends
        });
    }

    fn submit(&self, turn: Turn<'_>, takes: Duration) -> bool {
        if self.running.borrow().len() >= self.places {
            *self.refused.borrow_mut() += 1;
            turn.refused("QOSMaxSubmitJobPerUserLimit");
            return false;
        }
        *self.accepted.borrow_mut() += 1;
        let over = Arc::new(AtomicBool::new(false));
        self.running.borrow_mut().push((Arc::clone(&over), Instant::now() + takes));
        turn.let_in(move || over.load(Relaxed));
        true
    }
}

/// 100 cases of 30 s with room for 3: they take 34 rounds, and the site is asked little more than once in 5 s.
#[tokio::test(start_paused = true)]
async fn one_launch_asks_a_full_site_for_all_and_its_places_do_not_stay_empty() {
    let (queue, site, started) = (Queue::default(), Site::new(3), Instant::now());
    let one = |who: usize| {
        let (queue, site) = (&queue, &site);
        async move {
            loop {
                match turn(queue, who, "").await {
                    Ok(turn) => {
                        if site.submit(turn, Duration::from_secs(30)) {
                            return;
                        }
                    }
                    Err(delay) => assert!(matches!(delay, Delay::Busy | Delay::Full(_))),
                }
                sleep(Duration::from_millis(100)).await;
            }
        }
    };
    let ticks = async {
        while *site.accepted.borrow() < 100 {
            site.end_what_has_ended();
            sleep(Duration::from_millis(100)).await;
        }
    };
    futures_util::future::join(futures_util::future::join_all((0..100).map(one)), ticks).await;
    let took = started.elapsed().as_secs();
    assert!((33 * 30..33 * 30 + 34).contains(&took), "{took} s");
    let refused = *site.refused.borrow();
    assert!(refused as u64 <= took / 5 + 1, "{refused} in {took} s");
}

#[tokio::test(start_paused = true)]
async fn a_full_site_is_asked_every_half_minute_and_opens_for_all_when_it_lets_one_in() {
    let queue = Queue::default();
    turn(&queue, 0, "a").await.unwrap().refused("full");
    let asked = Instant::now();
    let delay = turn(&queue, 1, "a").await.unwrap_err();
    assert_eq!(delay, Delay::Full("full".to_owned()));
    turn(&queue, 2, "b").await.expect("another limit").mistaken();
    let first = loop {
        match turn(&queue, 0, "a").await {
            Ok(turn) => break turn,
            Err(delay) => assert_eq!(delay, Delay::Full("full".to_owned())),
        }
    };
    let waited = asked.elapsed().as_millis();
    assert!((30_000..30_500).contains(&waited), "{waited} ms");
    first.let_in(|| false);
    let opened = Instant::now();
    for who in [1, 3, 4] {
        turn(&queue, who, "a").await.unwrap().let_in(|| false);
    }
    assert_eq!(opened.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn sites_that_refuse_under_several_limits_are_not_asked_more_often() {
    let queue = Queue::default();
    let asked = AtomicUsize::new(0);
    let one = |who: usize| {
        let (queue, asked) = (&queue, &asked);
        async move {
            let limits = format!("limits {}", who % 4);
            let until = Instant::now() + Duration::from_mins(10);
            while Instant::now() < until {
                if let Ok(turn) = turn(queue, who, &limits).await {
                    asked.fetch_add(1, Relaxed);
                    turn.refused("full");
                }
                sleep(Duration::from_millis(100)).await;
            }
        }
    };
    futures_util::future::join_all((0..40).map(one)).await;
    let asked = asked.load(Relaxed);
    assert!((16..=26).contains(&asked), "{asked} in 600 s");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_is_asked_by_one_and_all_say_so() {
    let queue = Queue::default();
    let mut asked = Vec::new();
    let started = Instant::now();
    for attempt in 0..5 {
        let turn = loop {
            match turn(&queue, attempt % 2, "").await {
                Ok(turn) => break turn,
                Err(delay) => assert_eq!(delay, Delay::Away("no answer".to_owned())),
            }
        };
        asked.push(started.elapsed().as_millis() / 500);
        turn.no_answer("no answer", true);
    }
    assert_eq!(asked, [0, 2, 6, 14, 24], "in halves of a second");
    let delay = turn(&queue, 7, "").await.map(drop);
    assert_eq!(delay, Ok(()), "after 5 s");
    turn(&queue, 8, "").await.unwrap().let_in(|| false);
    assert!(turn(&queue, 9, "").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_was_never_given_to_sbatch_is_known_to_be_nothing() {
    let queue = Queue::default();
    let given = |outcome: for<'q> fn(Turn<'q>)| {
        let queue = &queue;
        async move {
            queue.set_unsubmitted(&id(1));
            advance(Duration::from_mins(1)).await;
            let mut turn = turn(queue, 1, "").await.unwrap();
            assert!(queue.is_unsubmitted(&id(1)));
            turn.submits();
            assert!(!queue.is_unsubmitted(&id(1)));
            outcome(turn);
            queue.is_unsubmitted(&id(1))
        }
    };
    assert!(given(|turn| turn.refused("full")).await);
    assert!(given(|turn| turn.no_answer("away", true)).await);
    assert!(!given(|turn| turn.no_answer("silent", false)).await);
    assert!(!given(|turn| turn.let_in(|| false)).await);
    assert!(!given(|turn| drop(turn)).await, "a launch that was cut off");
    let mut turn = turn(&queue, 2, "").await.unwrap();
    turn.submits();
    turn.refused("full");
    assert!(!queue.is_unsubmitted(&id(2)), "an earlier answer was lost");
}

#[tokio::test(start_paused = true)]
async fn a_launch_whose_answer_was_lost_comes_first_and_one_that_is_given_up_blocks_nobody() {
    let queue = Queue::default();
    let held = turn(&queue, 0, "").await.unwrap();
    assert_eq!(turn(&queue, 1, "").await.map(drop), Err(Delay::Busy));
    let (second, limits) = (id(2), key(""));
    let lost = queue.turn(&second, &limits, true, LONG_PATIENCE, || false);
    let (lost, other, ()) = tokio::join!(lost, turn(&queue, 3, ""), async {
        sleep(Duration::from_secs(1)).await;
        held.let_in(|| false);
    });
    assert_eq!((lost.is_ok(), other.map(drop)), (true, Err(Delay::Busy)));
    drop(lost);
    turn(&queue, 4, "").await.expect("1 is not there").let_in(|| false);
    advance(GIVEN_UP).await;
    turn(&queue, 4, "").await.unwrap().let_in(|| false);
    assert!(queue.state.lock().waiting.is_empty());
}

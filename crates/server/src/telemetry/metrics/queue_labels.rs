//! The choice of queues that have a label of their own; the others share one.
//!
//! A monitoring system takes a falling counter for a restart, and a jumping counter for work. So the labels are kept
//! from scrape to scrape, and each event is shown under one label only:
//!
//! - A queue keeps its label while the engine knows the queue. Only an empty queue may lose its label, the one that
//!   has been empty the longest first, and only when all labels are in use and a queue with tasks has none.
//! - A label begins at 0, and earlier counts of its queue stay with `{other}`. A rate ignores the first value of a
//!   series, but `{other}` always exists. In the very first scrape each queue has all its counts under its label,
//!   because nothing was shown before.
//! - After the first 1,000 labels each scrape gives at most 50 more, because each label is some twenty series that
//!   the monitoring system keeps for days.
//! - The namespaces share the labels: the queues of one tenant must not hide those of another. A free label goes to the
//!   namespace with the fewest. Without a free one, a namespace with more labels than another gives the label of its
//!   newest queue away. Queues without a namespace count as one.
//! - Counts that were shown under a label never move to `{other}`. When a queue loses its label or is forgotten, its
//!   counts since the last scrape go to `{other}`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tickwheel_queue::{QueueCounts, QueueFigures, QueueName, Timestamp};

/// The number of queues that have a label of their own. With more time series, the scrape and the server that stores
/// it would use most of the computer.
pub(crate) const QUEUES_MAX: usize = 1_000;

/// The number of labels that one scrape may give after the first 1,000. Without this limit, an application that uses
/// each queue once would begin 1,000 times twenty series with each scrape.
const NEW_LABELS_MAX: usize = 50;

/// The labels in use, kept from scrape to scrape.
#[derive(Debug, Default)]
pub(crate) struct QueueLabels {
    given: BTreeMap<QueueName, Label>,
    /// The number of labels that were given so far.
    given_total: usize,
    /// The sum of the counts that were shown under former labels.
    retired: QueueFigures,
    /// The counts that `{other}` showed in the last scrape.
    others: QueueFigures,
    /// The number of scrapes.
    scrapes: u64,
}

/// The label of one queue.
#[derive(Debug)]
struct Label {
    /// The number of the queue that has the label. A later queue of the same name has another number.
    appeared: u64,
    /// The counts of the queue when it got the label; `{other}` had shown them.
    base: QueueFigures,
    /// The counts that the label showed last.
    shown: QueueFigures,
    /// The first scrape that found the queue empty, if it is empty now.
    empty_since: Option<u64>,
}

/// A scrape that is being made. The queues come page by page, in the order of their names.
#[derive(Debug)]
pub(crate) struct Scrape<'a> {
    labels: &'a mut QueueLabels,
    /// The counts of queues with a label.
    labelled: BTreeMap<QueueName, QueueCounts>,
    /// Queues with tasks that have no label: at most [`QUEUES_MAX`], and beyond them [`NEW_LABELS_MAX`] of each of as many namespaces.
    with_tasks: BTreeMap<String, VecDeque<QueueCounts>>,
    /// The number of these queues.
    kept: usize,
    /// Queues without tasks that have no label, at most [`QUEUES_MAX`].
    empty: Vec<QueueCounts>,
    others: Others,
    /// The number of labels that are kept and not shown.
    silent: usize,
}

/// The sum of all queues without a label.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// Tasks by state; `None`: each queue has a label.
    pub(crate) tasks: Option<[u64; 4]>,
    pub(crate) oldest_due: Option<Timestamp>,
    /// The number of these queues.
    pub(crate) queues: u64,
    /// The number of paused queues among them.
    pub(crate) paused: u64,
    /// The counts of these queues, of forgotten queues, and of each queue before it had its label.
    pub(crate) figures: QueueFigures,
}

/// The values under the label of a queue.
#[derive(Debug)]
pub(crate) struct Labelled {
    pub(crate) queue: QueueName,
    pub(crate) tasks: [u64; 4],
    pub(crate) oldest_due: Option<Timestamp>,
    pub(crate) paused: bool,
    pub(crate) figures: QueueFigures,
}

fn by_state(counts: &QueueCounts) -> [u64; 4] {
    [counts.scheduled, counts.ready, counts.leased, counts.dead]
}

/// The namespace of a queue: the part of its name before the first slash, or nothing.
fn namespace(queue: &QueueName) -> &str {
    queue.as_str().split_once('/').map_or("", |(namespace, _)| namespace)
}

fn is_empty(counts: &QueueCounts) -> bool {
    by_state(counts) == [0; 4]
}

impl Others {
    fn add(&mut self, counts: &QueueCounts) {
        let tasks = self.tasks.get_or_insert_default();
        for (sum, count) in tasks.iter_mut().zip(by_state(counts)) {
            *sum += count;
        }
        self.oldest_due = self.oldest_due.into_iter().chain(counts.oldest_due).min();
        self.queues += 1;
        self.paused += u64::from(counts.paused);
        self.figures.add(&counts.figures);
    }
}

impl QueueLabels {
    /// Begins a scrape. Its changes are kept only if it is ended.
    pub(crate) fn scrape(&mut self) -> Scrape<'_> {
        Scrape {
            labels: self,
            labelled: BTreeMap::new(),
            with_tasks: BTreeMap::new(),
            kept: 0,
            empty: Vec::new(),
            others: Others::default(),
            silent: 0,
        }
    }

    fn take_label(&mut self, queue: &QueueName) {
        if let Some(label) = self.given.remove(queue) {
            self.retired.add(&label.shown);
        }
    }

    /// The counts under the label of the queue, which gets one if it has none.
    fn show(&mut self, counts: &QueueCounts) -> QueueFigures {
        if self.given.get(&counts.queue).is_some_and(|label| label.appeared != counts.appeared) {
            // The label belonged to an earlier queue of this name, which is forgotten.
            self.take_label(&counts.queue);
        }
        let is_first_scrape = self.scrapes == 1;
        let label = self.given.entry(counts.queue.clone()).or_insert_with(|| Label {
            appeared: counts.appeared,
            base: if is_first_scrape { QueueFigures::default() } else { counts.figures },
            shown: QueueFigures::default(),
            empty_since: None,
        });
        label.shown = label.shown.max(&counts.figures.since(&label.base));
        label.empty_since = is_empty(counts).then(|| label.empty_since.unwrap_or(self.scrapes));
        label.shown
    }
}

impl Scrape<'_> {
    /// Adds one queue.
    pub(crate) fn add(&mut self, counts: QueueCounts) {
        if self.labels.given.contains_key(&counts.queue) {
            self.labelled.insert(counts.queue.clone(), counts);
        } else if is_empty(&counts) {
            if self.empty.len() < QUEUES_MAX { self.empty.push(counts) } else { self.others.add(&counts) }
        } else {
            let namespace = namespace(&counts.queue);
            let of_namespace = self.with_tasks.get(namespace).map(VecDeque::len);
            let fits = self.kept < QUEUES_MAX
                || of_namespace.map_or(self.with_tasks.len() < QUEUES_MAX, |len| len < NEW_LABELS_MAX);
            if !fits {
                return self.others.add(&counts);
            }
            self.kept += 1;
            match self.with_tasks.get_mut(namespace) {
                Some(kept) => kept.push_back(counts),
                None => drop(self.with_tasks.insert(namespace.to_owned(), VecDeque::from([counts]))),
            }
        }
    }

    /// Ends the scrape after the last queue. `forgotten` holds the counts of queues that were forgotten before the
    /// first page. A queue that `is_silent` keeps its label, which is not shown.
    pub(crate) fn end(
        mut self,
        forgotten: &QueueFigures,
        is_silent: impl Fn(&QueueName) -> bool,
    ) -> (Vec<Labelled>, Others) {
        self.labels.scrapes += 1;
        let missing = self.labels.given.keys().filter(|name| !self.labelled.contains_key(*name));
        let (silent, gone): (Vec<_>, Vec<_>) = missing.cloned().partition(|name| is_silent(name));
        gone.iter().for_each(|name| self.labels.take_label(name));
        self.silent = silent.len();
        self.give_labels();
        let labels = self.labels;
        let labelled: Vec<Labelled> = self
            .labelled
            .into_values()
            .map(|counts| Labelled {
                figures: labels.show(&counts),
                tasks: by_state(&counts),
                oldest_due: counts.oldest_due,
                paused: counts.paused,
                queue: counts.queue,
            })
            .collect();
        let mut figures = self.others.figures;
        figures.add(forgotten);
        labels.given.values().for_each(|label| figures.add(&label.base));
        // The pages are read at different moments, so a queue may be missed; the next scrape finds it. The maximum
        // keeps the counters from falling.
        labels.others = labels.others.max(&figures.since(&labels.retired));
        (labelled, Others { figures: labels.others, ..self.others })
    }

    /// Gives labels to queues without one, queues with tasks first. The counts of the remaining queues go to
    /// `{other}`.
    fn give_labels(&mut self) {
        let most = QUEUES_MAX.saturating_sub(self.labels.given_total).max(NEW_LABELS_MAX);
        self.make_room(self.kept.min(most));
        let mut held = self.held();
        // The namespaces with a queue that waits, the one with the fewest labels first.
        let of = |held: &BTreeMap<String, usize>, namespace: &str| held.get(namespace).copied().unwrap_or(0);
        let waiting = self.with_tasks.keys();
        let mut line: BTreeSet<(usize, String)> =
            waiting.map(|namespace| (of(&held, namespace), namespace.clone())).collect();
        let mut given = 0;
        while given < most
            && let Some((_, namespace)) = line.pop_first()
            && (self.free() > 0 || self.take_from_richer(&namespace, &mut held))
        {
            let waiting = self.with_tasks.get_mut(&namespace);
            let Some(counts) = waiting.and_then(VecDeque::pop_front) else { continue };
            self.give(counts);
            *held.entry(namespace.clone()).or_default() += 1;
            line.insert((of(&held, &namespace), namespace));
            given += 1;
        }
        let rest = core::mem::take(&mut self.with_tasks).into_values().flatten();
        rest.for_each(|counts| self.others.add(&counts));
        for counts in core::mem::take(&mut self.empty) {
            if given < most && self.free() > 0 {
                self.give(counts);
                given += 1;
            } else {
                self.others.add(&counts);
            }
        }
    }

    fn give(&mut self, counts: QueueCounts) {
        self.labels.given_total += 1;
        self.labelled.insert(counts.queue.clone(), counts);
    }

    /// The number of labels of each namespace that has some, those that are not shown included.
    fn held(&self) -> BTreeMap<String, usize> {
        let mut held = BTreeMap::new();
        let silent = self.labels.given.keys().filter(|queue| !self.labelled.contains_key(*queue));
        for queue in self.labelled.keys().chain(silent) {
            match held.get_mut(namespace(queue)) {
                Some(count) => *count += 1,
                None => drop(held.insert(namespace(queue).to_owned(), 1)),
            }
        }
        held
    }

    /// Takes a label from the namespace with the most labels, if that leaves it no fewer than `namespace` then has. The newest queue loses its
    /// label. Returns whether a label is free.
    fn take_from_richer(&mut self, poorer: &str, held: &mut BTreeMap<String, usize>) -> bool {
        let of_poorer = held.get(poorer).copied().unwrap_or(0);
        let richest = held.iter_mut().max_by_key(|(_, count)| **count);
        let Some((richest, count)) = richest.filter(|(_, count)| **count > of_poorer + 1) else {
            return false;
        };
        let of_richest = self.labelled.values().filter(|counts| namespace(&counts.queue) == richest);
        let Some(name) = of_richest.max_by_key(|counts| counts.appeared).map(|counts| counts.queue.clone())
        else {
            return false;
        };
        *count -= 1;
        self.take(&name);
        self.free() > 0
    }

    /// Takes the label of a queue, whose counts go to `{other}`.
    fn take(&mut self, name: &QueueName) {
        self.labels.take_label(name);
        if let Some(counts) = self.labelled.remove(name) {
            self.others.add(&counts);
        }
    }

    /// The number of labels that no queue has.
    fn free(&self) -> usize {
        QUEUES_MAX.saturating_sub(self.labelled.len() + self.silent)
    }

    /// Takes labels from queues without tasks until `room` labels are free, or until no such queue has a label.
    fn make_room(&mut self, room: usize) {
        let wanted = room.saturating_sub(self.free());
        if wanted == 0 {
            return;
        }
        let since = |name: &QueueName| self.labels.given.get(name).and_then(|label| label.empty_since);
        let empty = self.labelled.iter().filter(|(_, counts)| is_empty(counts));
        let mut empty: Vec<_> =
            empty.map(|(name, _)| (since(name).unwrap_or(u64::MAX), name.clone())).collect();
        empty.sort();
        for (_, name) in empty.into_iter().take(wanted) {
            self.take(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::QueueTotals;

    use super::*;

    /// The queues of an engine, and the counts that it keeps of forgotten ones.
    #[derive(Default)]
    struct World {
        queues: BTreeMap<String, QueueCounts>,
        forgotten: QueueFigures,
        appeared: u64,
        labels: QueueLabels,
        /// The values of the last scrape.
        shown: BTreeMap<String, u64>,
        others: u64,
        /// The number of queues without a label.
        without_label: u64,
        /// A queue whose shard does not answer.
        silent: Option<String>,
    }

    impl World {
        /// Counts `puts` into a queue, and sets the number of its live tasks to `live`.
        fn put(&mut self, queue: &str, puts: u64, live: u64) {
            let appeared = &mut self.appeared;
            let counts = self.queues.entry(queue.to_owned()).or_insert_with(|| {
                *appeared += 1;
                counts(queue, *appeared)
            });
            counts.figures.put += puts;
            counts.ready = live;
        }

        fn forget(&mut self, queue: &str) {
            let counts = self.queues.remove(queue).expect("it is there");
            self.forgotten.add(&counts.figures);
        }

        /// Makes one scrape and reads it as Prometheus does. Returns the increase since the last scrape. A new series
        /// gives nothing, a series that has fallen gives its whole value, and the very first scrape gives everything.
        fn scrape(&mut self) -> u64 {
            let mut scrape = self.labels.scrape();
            let silent = self.silent.as_deref().unwrap_or_default();
            let answering = self.queues.values().filter(|counts| counts.queue.as_str() != silent);
            answering.for_each(|counts| scrape.add(counts.clone()));
            let (labelled, others) = scrape.end(&self.forgotten, |queue| queue.as_str() == silent);
            self.without_label = others.queues;
            let is_first = self.labels.scrapes == 1;
            assert!(labelled.len() <= QUEUES_MAX, "{} labels", labelled.len());
            let shown: BTreeMap<String, u64> =
                labelled.iter().map(|one| (one.queue.as_str().to_owned(), one.figures.put)).collect();
            let increase = |(name, now): (&String, &u64)| {
                let before = self.shown.get(name).copied();
                match before {
                    None if is_first => *now,
                    None => 0,
                    Some(before) if *now >= before => now - before,
                    Some(_) => *now,
                }
            };
            let of_labels: u64 = shown.iter().map(increase).sum();
            assert!(others.figures.put >= self.others, "{} after {}", others.figures.put, self.others);
            let of_others = others.figures.put - self.others;
            (self.shown, self.others) = (shown, others.figures.put);
            of_labels + of_others
        }
    }

    fn counts(queue: &str, appeared: u64) -> QueueCounts {
        QueueCounts {
            queue: QueueName::new(queue).expect("a name"),
            scheduled: 0,
            ready: 0,
            leased: 0,
            dead: 0,
            urgent: 0,
            oldest_due: None,
            totals: QueueTotals::default(),
            figures: QueueFigures::default(),
            appeared,
            paused: false,
            draining: false,
        }
    }

    /// A bug that was found: an application used each queue once. The first sample of each queue showed 50 puts, and
    /// the later ones no more, so a rate over all queues was 0.
    #[test]
    fn the_first_counts_of_a_new_queue_are_in_a_rate() {
        let mut world = World::default();
        world.put("a", 5, 1);
        assert_eq!((world.scrape(), world.shown["a"], world.others), (5, 5, 0));
        world.put("a", 2, 0);
        world.put("b", 7, 0);
        assert_eq!((world.scrape(), world.shown["a"], world.shown["b"], world.others), (9, 7, 0, 7));
        world.put("b", 3, 0);
        assert_eq!((world.scrape(), world.shown["b"], world.others), (3, 3, 7));
    }

    /// Without this limit, a client with only the right to put could begin twenty thousand series with each scrape.
    #[test]
    fn a_scrape_gives_at_most_fifty_new_labels() {
        let mut world = World::default();
        (0..QUEUES_MAX).for_each(|n| world.put(&format!("a{n:04}"), 1, 0));
        world.scrape();
        for round in ["b", "c"] {
            let before: Vec<String> = world.shown.keys().cloned().collect();
            (0..QUEUES_MAX).for_each(|n| world.put(&format!("{round}{n:04}"), 1, 1));
            assert_eq!(world.scrape(), 1_000, "each is counted all the same");
            let new = world.shown.keys().filter(|name| !before.contains(name)).count();
            assert_eq!((new, world.shown.len()), (NEW_LABELS_MAX, QUEUES_MAX));
            (0..QUEUES_MAX).for_each(|n| world.put(&format!("{round}{n:04}"), 0, 0));
        }
        // Forgotten queues free their labels. The freed labels are not given at once either.
        (0..QUEUES_MAX).for_each(|n| world.forget(&format!("a{n:04}")));
        world.scrape();
        assert!(world.shown.len() <= 150 + NEW_LABELS_MAX, "{}", world.shown.len());
        for _ in 0..20 {
            assert_eq!(world.scrape(), 0, "nothing was put");
        }
        assert_eq!(world.shown.len(), QUEUES_MAX);
    }

    /// The queue of an application that uses each name once.
    #[test]
    fn counts_after_the_last_scrape_of_a_queue_are_with_the_others() {
        let mut world = World::default();
        world.put("a", 5, 1);
        world.scrape();
        world.put("a", 2, 0);
        world.forget("a");
        world.put("never-seen", 3, 0);
        world.forget("never-seen");
        assert_eq!((world.scrape(), world.shown.get("a"), world.others), (5, None, 5));
        // Another queue of the same name counts from 0, and nothing is lost or counted twice.
        world.put("a", 100, 1);
        assert_eq!((world.scrape(), world.shown["a"], world.others), (100, 0, 105));
        world.put("a", 1, 1);
        world.forget("a");
        world.put("a", 4, 1);
        assert_eq!((world.scrape(), world.shown["a"], world.others), (5, 0, 110));
    }

    /// Otherwise its counts would come to `{other}`, and again under its label once it answers.
    #[test]
    fn a_queue_whose_shard_does_not_answer_keeps_its_label() {
        let mut world = World::default();
        world.put("a", 5, 1);
        world.put("b", 7, 1);
        assert_eq!(world.scrape(), 12);
        world.put("a", 1, 1);
        world.put("b", 2, 1);
        world.silent = Some("a".to_owned());
        assert_eq!((world.scrape(), world.shown.get("a"), world.shown["b"], world.others), (2, None, 9, 0));
        world.silent = None;
        world.scrape();
        assert_eq!((world.shown["a"], world.shown["b"], world.others), (6, 9, 0));
    }

    #[test]
    fn labels_stay_where_they_are() {
        let mut world = World::default();
        (0..QUEUES_MAX).for_each(|n| world.put(&format!("m{n:04}"), 1, 1));
        assert_eq!((world.scrape(), world.others), (1_000, 0));
        // By its name the queue comes before all others, and it has tasks. But queues with tasks use all the labels.
        world.put("a", 10, 1);
        assert_eq!((world.scrape(), world.others, world.shown.contains_key("a")), (10, 10, false));
        // An empty queue loses its label. The new label begins at 0, and the earlier counts of its queue stay in
        // `{other}`.
        world.put("m0500", 3, 0);
        assert_eq!((world.scrape(), world.shown.contains_key("m0500")), (3, false));
        assert_eq!((world.shown["a"], world.others), (0, 13));
        world.put("a", 4, 1);
        world.put("m0500", 2, 1);
        assert_eq!((world.scrape(), world.shown["a"], world.others), (6, 4, 15));
        // Under its new label the queue begins at 0, and the counts that it showed before are not counted again.
        world.put("m0001", 0, 0);
        world.put("m0500", 1, 1);
        assert_eq!((world.scrape(), world.shown["m0500"], world.others), (1, 0, 16));
        world.put("m0500", 1, 1);
        assert_eq!((world.scrape(), world.shown["m0500"], world.others), (1, 1, 16));
    }

    /// A bug that was found: an application used each queue once. Its emptied queues came before the others by name
    /// and took all labels for an hour. The queues with work were then visible as `{other}` only.
    #[test]
    fn empty_queues_take_no_label_from_one_that_has_tasks() {
        let mut world = World::default();
        (0..QUEUES_MAX + 5).for_each(|n| world.put(&format!("a{n:05}"), 1, 0));
        ["y", "z"].iter().for_each(|queue| world.put(queue, 1, 1));
        world.scrape();
        assert!(world.shown.contains_key("y") && world.shown.contains_key("z"));
        assert!(world.shown.contains_key("a00997") && !world.shown.contains_key("a00998"));
        // Later queues get a label, too. The queues that have been empty the longest lose theirs first.
        world.put("a00000", 1, 1);
        world.scrape();
        world.put("a00000", 1, 0);
        world.put("x", 1, 1);
        world.scrape();
        assert!(world.shown.contains_key("x") && world.shown.contains_key("a00000"));
        assert!(!world.shown.contains_key("a00001"), "it is empty for longer than a00000");
    }

    /// The story: 1,500 queues of one tenant had all labels after a restart, because their names came first.
    #[test]
    fn namespaces_share_the_labels() {
        let mut world = World::default();
        (0..QUEUES_MAX + 500).for_each(|n| world.put(&format!("a/{n:04}"), 1, 1));
        (0..3).for_each(|n| world.put(&format!("quiet/{n}"), 1, 1));
        world.put("plain", 1, 1);
        let of =
            |world: &World, prefix: &str| world.shown.keys().filter(|name| name.starts_with(prefix)).count();
        world.scrape();
        assert_eq!([of(&world, "a/"), of(&world, "quiet/"), of(&world, "plain")], [996, 3, 1]);
        assert_eq!(world.without_label, 504);
        // A tenant that comes later gets its labels, too: at most 50 with each scrape, and no more than the other one keeps.
        (0..QUEUES_MAX).for_each(|n| world.put(&format!("later/{n:04}"), 1, 1));
        for scrapes in 1..=12 {
            world.scrape();
            let later = of(&world, "later/");
            assert_eq!(later, (scrapes * NEW_LABELS_MAX).min(498), "after {scrapes} scrapes");
        }
        assert_eq!([of(&world, "a/"), of(&world, "quiet/"), of(&world, "plain")], [498, 3, 1]);
        let before: Vec<String> = world.shown.keys().cloned().collect();
        world.scrape();
        assert!(world.shown.keys().eq(&before), "then the labels stay where they are");
    }

    /// After any sequence of events, each put is shown once, and no series falls except one that begins anew.
    #[test]
    fn no_event_is_lost_or_shown_twice() {
        let mut world = World::default();
        let mut random = 88_172_645_463_325_252_u64;
        let mut draw = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        (0..QUEUES_MAX as u64 - 2).for_each(|n| world.put(&format!("q{n:04}"), 1, 1));
        let (mut puts, mut shown) = (QUEUES_MAX as u64 - 2, 0);
        for _ in 0..300 {
            for _ in 0..draw(20) {
                let (queue, now, live) = (format!("q{:04}", 990 + draw(30)), draw(5), draw(2));
                match draw(4) {
                    0 if world.queues.contains_key(&queue) => world.forget(&queue),
                    _ => {
                        world.put(&queue, now, live);
                        puts += now;
                    }
                }
            }
            shown += world.scrape();
            assert_eq!(shown, puts, "whoever reads each scrape has seen each put");
        }
        let sum = world.others + world.labels.retired.put + world.shown.values().sum::<u64>();
        assert_eq!(sum, puts, "what is shown, and what was shown under labels that are gone");
    }

    #[test]
    fn the_others_do_not_fall_if_a_queue_was_missed() {
        let mut world = World::default();
        (0..=QUEUES_MAX).for_each(|n| world.put(&format!("q{n:04}"), 2, 1));
        world.scrape();
        assert_eq!(world.others, 2);
        // The queue was forgotten after the first page and before its own page. The first page has `forgotten`.
        let missed = world.queues.remove("q1000").expect("it is there");
        assert_eq!((world.scrape(), world.others), (0, 2));
        world.forgotten.add(&missed.figures);
        assert_eq!((world.scrape(), world.others), (0, 2));
    }
}

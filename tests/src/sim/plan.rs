//! The plan of a simulation: what is called, what the store does, and when. A plan is data, so that
//! one which fails can be shrunk and shown.

use std::time::Duration;

use sealog_core::Options;
use sealog_core::format::COPY_LIMIT;

use crate::model::{Failure, Fate};

/// A whole simulation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The options of each opening, in turn.
    pub options: Vec<Options>,
    /// Whether listings begin where the store likes.
    pub ignores_after: bool,
    /// How many keys a delete request takes.
    pub keys_per_delete: usize,
    /// What happens.
    pub steps: Vec<Step>,
}

/// One thing that happens. A step that finds nothing to act on does nothing; one that needs a
/// running writer where there is none opens one, without faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begin to open, if no instance runs.
    Open,
    /// Append these, as `(region, size)`, in one append.
    Append(Vec<(u8, u32)>),
    /// Append one entry.
    AppendOne(u8, u32),
    /// Flush.
    Flush,
    /// Make entries of a region obsolete.
    Obsolete(u8, Target),
    /// Release a region.
    Release {
        /// The region.
        region: u8,
        /// Whether through every id that it could ever have.
        in_full: bool,
    },
    /// Plan to read a region.
    PlanRead(u8),
    /// Read what was planned.
    ReadPlanned,
    /// Read everything, and compare it with what must be there.
    Read,
    /// The request at this place, of those under way, takes effect; its answer comes later.
    TakeEffect(u8),
    /// The request at this place, of those under way, ends like this.
    End(u8, Fate),
    /// A put or a delete that nobody waits for any more lands: the newest one, or for an odd number any.
    Land(u8),
    /// A tick that nobody asked for.
    Tick,
    /// The answer that arrived last arrives once more.
    Echo,
    /// Time passes: what comes due in between comes due, and requests time out.
    Pass(u32),
    /// So many reads end well, oldest first, while no put is under way.
    Reads(u8),
    /// Everything under way ends well, until nothing is left to do.
    Calm,
    /// The instance ends without a stop. If `abandon`, it gives its waiters back first.
    Crash {
        /// Whether the shell goes away in order.
        abandon: bool,
    },
    /// Stop is called; what is under way runs out as the next steps say.
    Stop,
}

/// Up to where a region becomes obsolete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The entry that has this many acknowledged ones of its region after it.
    Back(u8),
    /// All that was handed out.
    Latest,
    /// Above everything, this many sequences further.
    Beyond(u8),
    /// No sequence can be above this.
    Max,
}

/// How much goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    /// The store does as it is told; only the order and the crashes are random.
    Fair,
    /// One request in ten or so ends badly.
    Rough,
    /// Most end badly.
    Foul,
}

impl Plan {
    /// The plan of a seed.
    pub fn random(seed: u64) -> Plan {
        let mut rng = Rng::new(seed);
        let mood = *rng.pick(&[Mood::Fair, Mood::Rough, Mood::Rough, Mood::Foul]);
        let options = (0..3).map(|_| random_options(&mut rng)).collect();
        let ignores_after = rng.below(4) == 0;
        let keys_per_delete = *rng.pick(&[1, 1, 3, 1_000]);
        let length = 40 + rng.below(240) as usize;
        let mut steps = Vec::new();
        while steps.len() < length {
            match rng.below(62) {
                0..=57 => steps.push(Step::random(&mut rng, mood)),
                58 => add_burst(&mut steps, &mut rng),
                59..=60 => add_collection(&mut steps, &mut rng, mood),
                _ => add_takeover(&mut steps, &mut rng, mood),
            }
        }
        Plan { options, ignores_after, keys_per_delete, steps }
    }
}

/// Appends that each want an object of their own, so that many puts are under way.
fn add_burst(steps: &mut Vec<Step>, rng: &mut Rng) {
    for _ in 0..2 + rng.below(7) {
        steps.push(Step::AppendOne(rng.byte(), random_size(rng)));
        steps.push(Step::Flush);
    }
}

/// Reads are planned, and what they would read is collected.
fn add_collection(steps: &mut Vec<Step>, rng: &mut Rng, mood: Mood) {
    add_burst(steps, rng);
    steps.push(if rng.below(2) == 0 { Step::Calm } else { Step::Pass(1_000) });
    for region in 0..5 {
        steps.push(Step::PlanRead(region));
        steps.push(match rng.below(4) {
            0 => Step::Release { region, in_full: rng.below(3) == 0 },
            _ => Step::Obsolete(region, Target::Latest),
        });
    }
    add_burst(steps, rng);
    for _ in 0..4 + rng.below(16) {
        steps.push(match rng.below(8) {
            0..=4 => Step::End(rng.byte(), random_fate(rng, mood)),
            _ => Step::TakeEffect(rng.byte()),
        });
    }
    steps.push(Step::ReadPlanned);
}

/// An instance goes away, perhaps with much under way, and others open the log with little luck.
fn add_takeover(steps: &mut Vec<Step>, rng: &mut Rng, mood: Mood) {
    if rng.below(2) == 0 {
        add_burst(steps, rng);
    }
    steps.push(match rng.below(8) {
        0 => Step::Stop,
        end => Step::Crash { abandon: end < 3 },
    });
    for _ in 0..1 + rng.below(3) {
        steps.push(Step::Open);
        if rng.below(2) == 0 {
            // While it lists, and half of the listing is read.
            steps.push(Step::TakeEffect(0));
            (0..rng.below(4)).for_each(|_| steps.push(Step::Land(rng.byte())));
        }
        // It gets as far as this, and then things happen.
        steps.push(Step::Reads(*rng.pick(&[1, 5, 255, 255, 255])));
        for _ in 0..rng.below(9) {
            steps.push(match rng.below(20) {
                0..=6 => Step::End(rng.byte(), random_fate(rng, mood)),
                7 => Step::TakeEffect(rng.byte()),
                8..=12 => Step::Land(rng.byte()),
                13..=14 => Step::Pass(*rng.pick(&[100, 1_000, 70_000])),
                15..=17 => Step::Reads(*rng.pick(&[2, 255])),
                _ => Step::Crash { abandon: false },
            });
        }
    }
}

impl Step {
    fn random(rng: &mut Rng, mood: Mood) -> Step {
        match rng.below(100) {
            0..=21 => Step::AppendOne(rng.byte(), random_size(rng)),
            22..=31 => {
                let count = if rng.below(20) == 0 { rng.below(60) } else { rng.below(6) };
                // Many entries are small ones: an append of them all should not seal ten objects.
                let most = 20_000 / (count + 1) as u32;
                Step::Append((0..count).map(|_| (rng.byte(), random_size(rng).min(most))).collect())
            }
            32..=34 => Step::Flush,
            35..=39 => Step::Obsolete(rng.byte(), Target::random(rng)),
            40 => Step::PlanRead(rng.byte()),
            41 => rng.pick(&[Step::Read, Step::ReadPlanned]).clone(),
            42..=44 => Step::Release { region: rng.byte(), in_full: rng.below(4) == 0 },
            45..=49 => Step::TakeEffect(rng.byte()),
            50..=75 => Step::End(rng.byte(), random_fate(rng, mood)),
            76..=79 => Step::Land(rng.byte()),
            80 => Step::Tick,
            81 => Step::Echo,
            82..=89 => Step::Pass(*rng.pick(&[0, 1, 1, 20, 100, 100, 250, 1_000, 3_000, 40_000])),
            90..=93 => Step::Calm,
            94..=96 => Step::Crash { abandon: rng.below(3) == 0 },
            97 => Step::Stop,
            _ => Step::Open,
        }
    }
}

impl Target {
    fn random(rng: &mut Rng) -> Target {
        match rng.below(20) {
            0 => Target::Max,
            1..=3 => Target::Beyond(rng.below(4) as u8),
            4..=7 => Target::Latest,
            _ => Target::Back(rng.below(6) as u8),
        }
    }
}

/// Any options that make for a lively simulation: small batches, short patience.
fn random_options(rng: &mut Rng) -> Options {
    let ms = Duration::from_millis;
    Options {
        flush_interval: ms(*rng.pick(&[0, 5, 100])),
        linger: ms(*rng.pick(&[0, 1, 30])),
        max_batch_bytes: *rng.pick(&[1, 200, 500, 4_000, 64 << 10, 8 << 20]),
        max_append_bytes: *rng.pick(&[40_000, 1 << 30, 1 << 30]),
        max_in_flight: *rng.pick(&[1, 2, 4, 4, 16]),
        retry_for: ms(*rng.pick(&[0, 150, 2_000, 60_000])),
        request_timeout: ms(*rng.pick(&[50, 1_000, 30_000])),
        open_concurrency: *rng.pick(&[1, 3, 64]),
        open_attempts: *rng.pick(&[1, 16]),
        open_timeout: ms(*rng.pick(&[500, 60_000])),
        verify_store: rng.below(4) > 0,
        max_deletes_in_flight: *rng.pick(&[1, 4]),
        reclaim_interval: ms(*rng.pick(&[0, 1_000, 60_000])),
        fence_retention: ms(*rng.pick(&[60_000, 60_000, 120_000, 7 * 86_400_000])),
        ..Options::default()
    }
}

/// Mostly small, some as large as an append of rows gets, some beyond what is copied.
fn random_size(rng: &mut Rng) -> u32 {
    match rng.below(100) {
        // Often alike, so that objects are of the same size too.
        0..=24 => *rng.pick(&[0, 8, 8, 100]),
        25..=64 => rng.below(200) as u32,
        65..=93 => rng.below(4_000) as u32,
        94..=97 => rng.below(40 << 10) as u32,
        _ => (COPY_LIMIT as u64 - 1 + rng.below(3)) as u32,
    }
}

fn random_fate(rng: &mut Rng, mood: Mood) -> Fate {
    let bad = match mood {
        Mood::Fair => 0,
        Mood::Rough => 12,
        Mood::Foul => 70,
    };
    if rng.below(100) >= bad {
        return Fate::Honest;
    }
    let failure = match rng.below(20) {
        0 => Failure::Refused,
        1..=10 => Failure::Transient,
        _ => Failure::TimedOut,
    };
    match rng.below(16) {
        0..=4 => Fate::AnswerLost(failure),
        5..=9 => Fate::NoEffect(failure),
        10..=12 => Fate::Late(failure),
        13 => *rng.pick(&[Fate::SaysExists, Fate::InPart(failure)]),
        _ => Fate::Damaged,
    }
}

/// A source of numbers that are the same for the same seed, for ever: SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    fn byte(&mut self) -> u8 {
        self.number() as u8
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

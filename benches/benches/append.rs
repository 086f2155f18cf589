//! Appends until they are acknowledged, over the in-memory store: the log, and the floor beside it
//! in the same process. The ratio of the two is the figure to watch.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use object_store::memory::InMemory;
use sealog_benches::Floor;
use sealog_tokio::{Options, RegionId, Wal};
use tokio::runtime::Runtime;

const SIZES: [usize; 3] = [100, 1 << 10, 16 << 10];
const CALLERS: [u64; 3] = [1, 64, 1024];

/// Both put whenever a slot is free.
fn options() -> Options {
    Options { linger: Duration::ZERO, flush_interval: Duration::ZERO, ..Options::default() }
}

/// Spreads `iterations` calls over `callers` tasks, and times them all.
async fn time<F>(callers: u64, iterations: u64, call: impl Fn() -> F) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let begun = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let share = iterations / callers + u64::from(caller < iterations % callers);
            let calls: Vec<_> = (0..share).map(|_| call()).collect();
            tokio::spawn(async move {
                for call in calls {
                    call.await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a caller panicked");
    }
    begun.elapsed()
}

fn append(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a tokio runtime");
    for size in SIZES {
        let payload = Bytes::from(vec![7; size]);
        for callers in CALLERS {
            let mut group =
                criterion.benchmark_group(format!("append {size} B, {callers} callers"));
            group.throughput(Throughput::Elements(1));
            group.sample_size(15).measurement_time(Duration::from_secs(2));
            group.warm_up_time(Duration::from_millis(500));
            group.bench_function(BenchmarkId::from_parameter("sealog"), |bencher| {
                bencher.to_async(&runtime).iter_custom(|iterations| {
                    let payload = payload.clone();
                    async move {
                        let store = Arc::new(InMemory::new());
                        let wal = Wal::open(store, "bench", options()).await.expect("an open log");
                        time(callers, iterations, || {
                            let (wal, payload) = (wal.clone(), payload.clone());
                            async move {
                                black_box(wal.append(RegionId(1), payload).await).expect("an id");
                            }
                        })
                        .await
                    }
                });
            });
            group.bench_function(BenchmarkId::from_parameter("floor"), |bencher| {
                bencher.to_async(&runtime).iter_custom(|iterations| {
                    let payload = payload.clone();
                    async move {
                        let floor = Floor::start(Arc::new(InMemory::new()));
                        time(callers, iterations, || {
                            let (floor, payload) = (floor.clone(), payload.clone());
                            async move {
                                black_box(floor.append(payload).await).expect("an object");
                            }
                        })
                        .await
                    }
                });
            });
            group.finish();
        }
    }
}

criterion_group!(benches, append);
criterion_main!(benches);

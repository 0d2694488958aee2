//! A device that computes in host memory and is treated as an accelerator, and a slow link to it that breaks.

use crate::{
    batch::{Batch, BatchPlan, BatchState, Collate, Content, RawBatch, RowMut, RowsSource, Samples, Source, Task},
    device::{
        Target, TransferState, Transport, Uploader,
        tests::{Breaks, Fake, Hang, accelerator},
    },
    fault::{BoxError, Error, Faults, Skips},
    memory::{Decoder, Field, HeapAlloc, Permit, Pool, PoolLimits, SlotLayout, Wait},
    observe::{Counters, StepClock, TaskClock},
    order::{Feed, Schedule},
    pipeline::{Bounds, Growth, Pipeline, Settings, Threads},
    vision::{Adjust, CropBox, Image, Interpolation, Limits, PaddingMode, Picture, Size, write_chw},
    vocabulary::{BatchKey, IteratorId},
};
use burn::{
    data::dataset::{Dataset, InMemDataset},
    tensor::{DType, Int},
};
use image::{Rgb, RgbImage};
use std::{
    cell::Cell,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

pub(super) const ROWS: usize = 8;
pub(super) const SLOTS: usize = 4;

/// Rows of nine bytes, with images or without.
pub(super) struct Bytes {
    images: bool,
}

/// From here on, the files of rows have an unsound header within their data. Only decoding them shows it.
pub(super) const BROKEN: u8 = 250;

/// The image of a row: a JPEG, and every third time pixels. Part, size, colours and flips are noted.
fn picture(x: u8) -> Image {
    let pixels = RgbImage::from_fn(40, 30, |across, down| Rgb([x, across as u8 * 6, down as u8 * 8]));
    let mut image = if x.is_multiple_of(3) && x < BROKEN {
        Image::from(pixels)
    } else {
        let mut file = Vec::new();
        let encoded = jpeg_encoder::Encoder::new(&mut file, 90).encode(&pixels, 40, 30, jpeg_encoder::ColorType::Rgb);
        encoded.unwrap();
        if x >= BROKEN {
            let scan = file.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap();
            file[scan + 18..scan + 22].copy_from_slice(&[0xFF, 0xDA, 0, 2]);
        }
        Image::from_bytes(file, &Limits::default()).unwrap()
    };
    if x.is_multiple_of(2) {
        image.flip_vertical();
    }
    let part = CropBox { left: 3, top: 4, width: 31 - i64::from(x % 7) as u32, height: 20 };
    image.resized_crop(part, Size { width: 18, height: 16 }, Interpolation::Bilinear).unwrap();
    image.crop(CropBox { left: 1, top: 0, width: 16, height: 16 }, PaddingMode::Constant, [0; 3]).unwrap();
    for change in [Adjust::Hue(0.3), Adjust::Contrast(1.4), Adjust::Saturation(0.5), Adjust::Brightness(0.9)] {
        image.adjust(change).unwrap();
    }
    image.erase(CropBox { left: 9, top: 2, width: 3, height: 5 }, [x, 7, 255]).unwrap();
    image.flip_horizontal();
    image
}

impl Collate<u8> for Bytes {
    type Batch = ();

    fn layout(&self) -> Vec<Field> {
        let mut fields = vec![Field::new("x", DType::U8, [9]), Field::new("y", DType::U8, [])];
        fields.extend(self.images.then(|| Field::image("picture", 16).decoder(Decoder::Device)));
        fields
    }

    fn write(&self, x: &u8, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("x", &[*x; 9])?;
        if self.images {
            row.image("picture", &picture(*x))?;
        }
        Ok(row.put("y", *x)?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<(), BoxError> {
        if self.images {
            let seen = batch.take::<4, Int>("picture")?.into_data().try_to_vec::<u8>()?;
            let rows = batch.take::<1, Int>("y")?.into_data().try_to_vec::<u8>()?;
            for (x, seen) in rows.into_iter().zip(seen.chunks(3 * 16 * 16)) {
                let mut expected = vec![0; seen.len()];
                write_chw(&picture(x).into_rgb()?, &mut expected)?;
                assert!(seen == expected, "the picture of {x}");
            }
        }
        sleep(Duration::from_millis(1));
        Ok(())
    }
}

pub(super) fn rows(batches: usize, counters: &Arc<Counters>) -> RowsSource<u8, ()> {
    rows_of(InMemDataset::new(vec![7u8; batches * ROWS]), counters)
}

/// Rows with images that the device decodes.
pub(super) fn pictures(batches: usize, counters: &Arc<Counters>) -> RowsSource<u8, ()> {
    pictures_of((0..batches * ROWS).map(|n| (n % 200) as u8).collect(), counters)
}

/// The same with these numbers.
pub(super) fn pictures_of(numbers: Vec<u8>, counters: &Arc<Counters>) -> RowsSource<u8, ()> {
    let bytes = Bytes { images: true };
    let layout = SlotLayout::new(bytes.layout(), ROWS).unwrap().on(DType::I32, true).unwrap();
    source_of(InMemDataset::new(numbers), counters, bytes, layout)
}

pub(super) fn rows_of(dataset: impl Dataset<u8> + 'static, counters: &Arc<Counters>) -> RowsSource<u8, ()> {
    let bytes = Bytes { images: false };
    let layout = SlotLayout::new(bytes.layout(), ROWS).unwrap();
    source_of(dataset, counters, bytes, layout)
}

fn source_of(
    dataset: impl Dataset<u8> + 'static,
    counters: &Arc<Counters>,
    bytes: Bytes,
    layout: SlotLayout,
) -> RowsSource<u8, ()> {
    let samples = Samples {
        many: None,
        len: dataset.len(),
        get: Arc::new(move |index| Ok(dataset.get(index)?)),
        augment: None,
        seed: 0,
        faults: Faults { counters: Arc::clone(counters), ..Faults::default() },
    };
    let layout = Arc::new(layout);
    RowsSource {
        samples: Arc::new(samples),
        collate: Arc::new(bytes),
        plain: Arc::clone(&layout),
        layout,
        target: accelerator(),
    }
}

/// What two transfer threads do.
pub(super) fn settings() -> Settings {
    let long = Duration::from_secs(10);
    Settings { prefetch: 2, transfers: 2, timeout: Some(long), lease_timeout: long, device: None }
}

pub(super) fn pipeline(source: impl Source<()> + 'static, counters: &Arc<Counters>) -> Arc<Pipeline<()>> {
    pipeline_of(settings(), source, counters)
}

pub(super) fn pipeline_of(
    settings: Settings,
    source: impl Source<()> + 'static,
    counters: &Arc<Counters>,
) -> Arc<Pipeline<()>> {
    let limits = PoolLimits { slots: SLOTS, bytes: SLOTS * source.slot_bytes().unwrap() };
    let pool = Pool::new(Arc::new(HeapAlloc), limits, Arc::clone(counters));
    counters.note(|stats| (stats.transfer_threads, stats.slots) = (settings.transfers, limits.slots));
    Pipeline::new(settings, Arc::new(source), pool)
}

/// The threads of a pipeline, two workers among them.
pub(super) fn threads(pipeline: &Arc<Pipeline<()>>) -> Threads<()> {
    Threads::start(Arc::clone(pipeline), Growth::new(Bounds::fixed(2), 1)).unwrap()
}

pub(super) fn epoch_of(batches: usize) -> Feed {
    Schedule::sequential(batches * ROWS, ROWS).epoch(0).unwrap().0
}

/// Whether a batch came, and not an error.
pub(super) fn is_whole(batch: &Batch<()>) -> bool {
    !matches!(batch.state, BatchState::Failed(_))
}

/// Finishes a batch, as a consumer does. Returns the number of its samples.
pub(super) fn finish(pipeline: &Pipeline<()>, content: Box<Content<()>>) -> usize {
    match pipeline.source.finish(*content) {
        Ok(BatchState::Ready { items, .. }) => items,
        Ok(_) => panic!("no batch"),
        Err(error) => panic!("{error}"),
    }
}

/// Begins an epoch of all batches.
pub(super) fn begin(pipeline: &Pipeline<()>, epoch: usize, batches: usize) -> IteratorId {
    pipeline.begin(epoch, epoch_of(batches), 0..batches).ok().expect("threads at work")
}

/// Takes an epoch as `EpochIter` does, without a step. Returns how long it waited for the loader, as a share of its time.
pub(super) fn consume(pipeline: Arc<Pipeline<()>>, counters: &Arc<Counters>, batches: usize) -> f64 {
    let (start, mut waited) = (Instant::now(), Duration::ZERO);
    let threads = threads(&pipeline);
    let mut clock = StepClock::new(Arc::clone(counters), counters.copy(), BatchKey::NONE, Instant::now());
    let id = begin(&pipeline, 0, batches);
    loop {
        let asked = clock.asked();
        let Some((batch, wait)) = pipeline.next(id, asked) else { break };
        let BatchState::OnDevice(content) = batch.state else { panic!("batches are finished by the consumer") };
        finish(&pipeline, content);
        clock.handed(asked, batch.key.number, Some(ROWS));
        waited += wait;
    }
    let share = waited.as_secs_f64() / start.elapsed().as_secs_f64();
    pipeline.end(id);
    drop(threads);
    share
}

/// What a device does at a batch.
type AtBatch = dyn Fn(usize) -> Option<Breaks> + Send + Sync;

thread_local! {
    /// The batch that this transfer thread sends.
    static SENDS: Cell<usize> = const { Cell::new(0) };
}

/// Rows on a slow link, to a device that does what it is told at some batches.
pub(super) struct Link {
    pub(super) rows: Arc<RowsSource<u8, ()>>,
    pub(super) send: Duration,
    pub(super) breaks: Arc<AtBatch>,
    pub(super) hang: Arc<Hang>,
}

impl Link {
    pub(super) fn new(rows: RowsSource<u8, ()>) -> Self {
        Self { rows: Arc::new(rows), send: Duration::ZERO, breaks: Arc::new(|_| None), hang: Arc::default() }
    }

    /// The device does this at batches.
    pub(super) fn breaks(self, breaks: impl Fn(usize) -> Option<Breaks> + Send + Sync + 'static) -> Self {
        Self { breaks: Arc::new(breaks), ..self }
    }
}

impl Source<()> for Link {
    fn target(&self) -> &Target {
        self.rows.target()
    }

    fn on(&self, _: Target) -> Result<Arc<dyn Source<()>>, Error> {
        unreachable!("a link has one target")
    }

    fn transport(&self, _: &TransferState) -> Result<Box<dyn Transport>, BoxError> {
        let breaks = Arc::clone(&self.breaks);
        Ok(Box::new(Fake::open(move || breaks(SENDS.get()), &self.hang)))
    }

    fn faults(&self) -> &Faults {
        self.rows.faults()
    }

    fn slot_bytes(&self) -> Option<usize> {
        self.rows.slot_bytes()
    }

    fn is_uneven(&self) -> bool {
        self.rows.is_uneven()
    }

    fn open(
        &self,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wait: &Wait<'_>,
        chunk: usize,
    ) -> Result<Vec<Task<()>>, Error> {
        self.rows.open(plan, permit, pool, wait, chunk)
    }

    fn run(&self, task: Task<()>, clock: &mut TaskClock<'_>) -> Option<Batch<()>> {
        self.rows.run(task, clock)
    }

    fn pin(&self, _: Box<Content<()>>, _: &Arc<Pool>, _: &Wait<'_>) -> Result<Box<Content<()>>, Error> {
        unreachable!("these rows have no gaps")
    }

    fn decode(&self, content: &mut Content<()>, uploader: &mut Uploader) -> Result<Skips, Error> {
        SENDS.set(content.rows()?.plan.key.number);
        self.rows.decode(content, uploader)
    }

    fn send(
        &self,
        mut content: Box<Content<()>>,
        pool: &Arc<Pool>,
        uploader: &mut Uploader,
    ) -> Result<BatchState<()>, Error> {
        SENDS.set(content.rows()?.plan.key.number);
        sleep(self.send);
        self.rows.send(content, pool, uploader)
    }

    fn finish(&self, content: Content<()>) -> Result<BatchState<()>, Error> {
        self.rows.finish(content)
    }
}

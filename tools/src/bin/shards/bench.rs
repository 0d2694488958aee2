//! How fast a source is, behind the loader.

use super::{
    first::{First, ROUNDS, first_batches},
    report::Report,
};
use burn::{
    data::dataset::{
        Dataset, DatasetError,
        transform::{Mapper, MapperDataset},
    },
    tensor::Device,
};
use burn_pinned::{
    BoxError, LoaderState, PinnedDataLoaderBuilder,
    data::{Rows, Tokens},
    order::Blocks,
    vision::{Image, ImageFolder, RandomHorizontalFlip, RandomResizedCrop},
};
use burn_pinned_tools::{
    collate::{Count, Pixels, Tally, Windows},
    format::Format,
    measure::{Until, agree, measure},
    open::Open,
    order::Order,
    remote::{Traffic, reads_ahead},
    row::{self, Row},
    size::time,
};
use clap::value_parser;
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Tokens of a window.
const WINDOW: usize = 1024;

/// Reads a data set as training would, on a CPU backend, and prints samples/s, MB/s and the verdict
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    open: Open,
    /// Columns to read: of a tar the extensions. Without it, all; with --decode, the one of the image
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    columns: Vec<String>,
    /// How long to measure. The last epoch may not come to its end
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Measure this number of epochs instead
    #[arg(long)]
    epochs: Option<usize>,
    #[arg(long, default_value_t = 64)]
    batch_size: usize,
    /// Threads that read. Without it, the loader chooses
    #[arg(long)]
    workers: Option<usize>,
    #[arg(long, value_enum, default_value_t = Order::Full)]
    order: Order,
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Decode images, crop a random part to this side, flip half of them. Then MB are those of the pixels
    #[arg(long, value_name = "SIDE", value_parser = value_parser!(u32).range(1..=16_384))]
    decode: Option<u32>,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Time the first batch instead: of epochs from their start, and of epochs resumed at their half, in turn
    #[arg(long, conflicts_with_all = ["decode", "epochs", "json"])]
    resume: bool,
}

/// What rows tell besides their samples.
struct Source {
    blocks: Blocks,
    traffic: Box<dyn Fn() -> Option<Traffic>>,
}

impl Source {
    fn of<T: 'static>(rows: &Rows<T>) -> Result<Self, BoxError> {
        let (blocks, rows) = (Blocks::from(rows.blocks()?), rows.clone());
        Ok(Self { blocks, traffic: Box::new(move || Traffic::of(&rows)) })
    }
}

pub(crate) fn run(args: &Args) -> Result<(), BoxError> {
    if args.resume {
        return args.first_batches();
    }
    let opened = Instant::now();
    match (args.open.format()?, args.decode) {
        (Format::Tokens, None) => {
            let tokens = Tokens::open(args.open.paths.clone())?;
            let collate = Windows { len: WINDOW, kind: tokens.kind() };
            let work = format!("windows of {WINDOW} tokens of {}", tokens.kind());
            args.bench(opened, PinnedDataLoaderBuilder::new(collate), tokens.windows(WINDOW, WINDOW), None, work)
        }
        (Format::Tokens, Some(_)) => Err("token files have no images: leave out --decode".into()),
        (Format::Folder, None) => {
            let files = Files(ImageFolder::open(args.open.folder()?)?);
            args.bench(opened, PinnedDataLoaderBuilder::new(Count), files, None, "bytes of whole files".into())
        }
        (Format::Folder, Some(side)) => {
            let folder = ImageFolder::open(args.open.folder()?)?;
            args.bench(opened, pixels(side)?, MapperDataset::new(folder, TheImage), None, decoded(side))
        }
        (_, None) => {
            row::choose(&args.columns);
            let rows = args.open.rows::<Row>(&[], &[])?;
            let (source, work) = (Source::of(&rows)?, format!("bytes of {}", args.columns_in_words()));
            args.bench(opened, PinnedDataLoaderBuilder::new(Count), rows, Some(source), work)
        }
        (_, Some(side)) if args.columns.is_empty() => {
            args.decode(opened, side, args.open.rows::<Picture>(&[], &NAMES)?)
        }
        (_, Some(side)) => args.decode(opened, side, args.open.rows::<(Image,)>(&args.columns, &[])?),
    }
}

impl Args {
    fn columns_in_words(&self) -> String {
        match self.columns.as_slice() {
            [] => "all columns".into(),
            columns => columns.join(", "),
        }
    }

    fn decode<T>(&self, opened: Instant, side: u32, rows: Rows<T>) -> Result<(), BoxError>
    where
        T: DeserializeOwned + Send + Sync + 'static,
        TheImage: Mapper<T, Image>,
    {
        let (source, builder) = (Source::of(&rows)?, reads_ahead(pixels(side)?, &rows));
        self.bench(opened, builder, MapperDataset::new(rows, TheImage), Some(source), decoded(side))
    }

    fn bench<I: Send + Sync + Clone + 'static>(
        &self,
        opened: Instant,
        builder: PinnedDataLoaderBuilder<I, Tally>,
        dataset: impl Dataset<I> + 'static,
        source: Option<Source>,
        work: String,
    ) -> Result<(), BoxError> {
        let (opened, rows) = (opened.elapsed(), dataset.len());
        let (blocks, traffic) = source.map(|source| (source.blocks, source.traffic)).unzip();
        let (builder, order) = self.with_options(builder, blocks)?;
        let loader = builder.build(dataset)?;
        let seconds = Duration::try_from_secs_f64(self.seconds)?;
        let epochs = measure(&*loader, self.epochs.map_or(Until::Time(seconds), Until::Epochs))?;
        if !agree(&epochs) {
            return Err("two epochs had different bytes: the files change, or they are read wrong".into());
        }
        let stats = loader.stats();
        let report = Report {
            format: self.open.format()?.name(),
            work,
            rows,
            opened,
            workers: stats.workers,
            batch_size: self.batch_size,
            order,
            epochs,
            traffic: traffic.and_then(|seen| seen()),
            verdict: stats.verdict().to_string(),
        };
        if self.json {
            println!("{}", report.json())
        } else {
            report.print()
        }
        Ok(())
    }

    /// The builder with the options of the command, and its order in words.
    fn with_options<I: Send + Sync + Clone + 'static>(
        &self,
        builder: PinnedDataLoaderBuilder<I, Tally>,
        blocks: Option<Blocks>,
    ) -> Result<(PinnedDataLoaderBuilder<I, Tally>, String), BoxError> {
        let mut builder = builder.batch_size(self.batch_size).set_device(Device::flex()).seed(self.seed);
        if let Some(workers) = self.workers {
            builder = builder.num_workers(workers);
        }
        self.order.set(builder, blocks, self.seed)
    }

    fn first_batches(&self) -> Result<(), BoxError> {
        row::choose(&self.columns);
        let open = || self.open.rows::<Row>(&[], &[]);
        let build = |rows: Rows<Row>, state: Option<LoaderState>| {
            let (builder, _) = self.with_options(PinnedDataLoaderBuilder::new(Count), Some(rows.blocks()?.into()))?;
            let builder = match state {
                Some(state) => builder.resume(state),
                None => builder,
            };
            Ok(builder.build(rows)?)
        };
        let First { fresh, resumed } = first_batches(open, build)?;
        println!("the first batch, medians of {ROUNDS}, from `build` on");
        println!("  of an epoch      {}", time(fresh));
        println!("  resumed at half  {}", time(resumed));
        println!("  ratio            {:.2}", resumed.as_secs_f64() / fresh.as_secs_f64());
        Ok(())
    }
}

fn pixels(side: u32) -> Result<PinnedDataLoaderBuilder<Image, Tally>, BoxError> {
    let builder = PinnedDataLoaderBuilder::new(Pixels(side as usize));
    Ok(builder.augment((RandomResizedCrop::new(side)?, RandomHorizontalFlip::default())))
}

fn decoded(side: u32) -> String {
    format!("images decoded to 3 x {side} x {side}")
}

/// The files of a folder, unread.
struct Files(ImageFolder);

impl Dataset<Row> for Files {
    fn get(&self, index: usize) -> Result<Row, DatasetError> {
        fs::read(self.0.path(index)).map(Row::of).map_err(DatasetError::new)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// A row with an image, under any of the usual names.
#[derive(Deserialize)]
struct Picture {
    #[serde(alias = "img", alias = "jpg", alias = "jpeg", alias = "png", alias = "webp", alias = "gif")]
    image: Image,
}

/// All these names. A data set has one of them.
const NAMES: [&str; 7] = ["image", "img", "jpg", "jpeg", "png", "webp", "gif"];

/// Takes the image of a row.
struct TheImage;

impl Mapper<Picture, Image> for TheImage {
    fn map(&self, row: &Picture) -> Image {
        row.image.clone() // shares the bytes
    }
}

impl Mapper<(Image,), Image> for TheImage {
    fn map(&self, row: &(Image,)) -> Image {
        row.0.clone()
    }
}

impl Mapper<(Image, usize), Image> for TheImage {
    fn map(&self, row: &(Image, usize)) -> Image {
        row.0.clone()
    }
}

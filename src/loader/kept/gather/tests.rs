//! What a fault on the device leaves behind.

use super::{super::fates::Fates, *};
use crate::{
    device::Table,
    fault::{BoxError, Faults},
    memory::{Field, IntegerFit},
    order::Schedule,
    sync::locks::Mutex,
};

/// 200 rows, each with its number, in batches of one.
fn numbers() -> Gather<i32> {
    let (device, len) = (Device::flex(), 200);
    let fields = vec![Field::new("x", DType::I32, [])];
    let values = TensorData::new((0..len as i32).collect::<Vec<_>>(), [len, 1]);
    let table = Table::Int(Tensor::from_data(values, (&device, DType::I32)));
    let tables = Arc::new(Tables { device: device.clone(), fields: vec![table], rows: len });
    let finish = |mut raw: RawBatch| {
        let number = raw.take::<1, Int>("x")?.into_data().try_to_vec::<i32>()?;
        Ok::<_, BoxError>(number[0])
    };
    let kept = KeptRows {
        fields,
        columns: (Vec::new(), Vec::new()),
        finish: Box::new(finish),
        fates: Fates::default(),
        sizes: Vec::new(),
        compared: IntegerFit::default(),
        len,
        seed: 0,
        faults: Faults::default(),
        devices: Mutex::new(vec![Arc::downgrade(&tables)]),
    };
    let (feed, progress) = Schedule::sequential(len, 1).epoch(0).unwrap();
    let kept = KeptData { rows: Arc::new(kept), tables: Mutex::new(tables) };
    kept.begin(&device, feed, progress.batches(), BatchKey::new(0, 0)).unwrap()
}

fn next(gather: &mut Gather<i32>) -> Option<Result<i32, Error>> {
    let Batch { state, .. } = gather.next()?;
    let finished = match state {
        BatchState::OnDevice(content) => gather.finish_rows(*content),
        state => Ok(state),
    };
    Some(finished.and_then(|state| match state {
        BatchState::Ready { batch, .. } => Ok(batch),
        BatchState::Failed(error) => Err(error),
        _ => panic!("a batch of one row"),
    }))
}

/// Rows that were gathered before a panic are no other batch's.
#[test]
fn a_panic_in_the_last_of_the_batches_that_are_gathered_at_once_leaves_no_rows() {
    let mut gather = numbers();
    for number in 0..BATCHES as i32 - 1 {
        assert_eq!(next(&mut gather).unwrap().unwrap(), number);
    }
    gather.gathered = vec![Box::new(|_, _| panic!("the device is lost"))];
    let error = next(&mut gather).unwrap().unwrap_err();
    assert!(matches!(&error, Error::Panicked { message, .. } if message.contains("is lost")), "{error}");
    for number in BATCHES as i32..200 {
        assert_eq!(next(&mut gather).unwrap().unwrap(), number);
    }
    assert!(next(&mut gather).is_none());
}

//! All gradients of a module as one flat tensor, and back.

use burn::{
    module::{ModuleVisitor, Param},
    optim::GradientsParams,
    prelude::*,
};

/// The gradients in the module's order, which is the same for every replica, and then the loss.
pub(crate) fn flatten<M: Module>(model: &M, grads: GradientsParams, loss: Tensor<1>) -> Tensor<1> {
    struct Flatten {
        grads: GradientsParams,
        device: Device,
        flat: Vec<Tensor<1>>,
    }
    impl ModuleVisitor for Flatten {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if !param.is_require_grad() {
                return;
            }
            let len = param.shape().num_elements();
            // A parameter that this batch did not use has a zero gradient, because another device may have used it.
            let grad = self.grads.remove::<D>(param.id);
            self.flat.push(grad.map_or_else(|| Tensor::zeros([len], &self.device), |grad| grad.reshape([len])));
        }
    }
    let loss = loss.inner();
    let mut flatten = Flatten { grads, device: loss.device(), flat: Vec::new() };
    model.visit(&mut flatten);
    flatten.flat.push(loss);
    Tensor::cat(flatten.flat, 0)
}

/// The inverse of [`flatten`].
pub(crate) fn unflatten<M: Module>(model: &M, flat: Tensor<1>) -> (GradientsParams, Tensor<1>) {
    struct Unflatten {
        flat: Tensor<1>,
        at: usize,
        grads: GradientsParams,
    }
    impl ModuleVisitor for Unflatten {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if !param.is_require_grad() {
                return;
            }
            let shape = param.shape();
            let len = shape.num_elements();
            let grad: Tensor<D> = self.flat.clone().narrow(0, self.at, len).reshape(shape);
            self.grads.register(param.id, grad);
            self.at += len;
        }
    }
    let mut unflatten = Unflatten { flat, at: 0, grads: GradientsParams::new() };
    model.visit(&mut unflatten);
    let loss = unflatten.flat.narrow(0, unflatten.at, 1);
    (unflatten.grads, loss)
}

//! burn's CUDA backend against its CPU backend: the same program on both, the results compared.

use burn::{
    backend::{Autodiff, Cuda, Flex},
    module::{Module, Param},
    nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig},
    optim::{AdamConfig, GradientsParams, Optimizer, SgdConfig},
    tensor::{
        Device, Int, Tensor, TensorData, activation,
        backend::{AutodiffBackend, Backend},
    },
};
use half::f16;

/// Compares each result of a program on the two backends. A number may be off by `tolerance` times the largest magnitude
/// among the CPU's results, which is 0 for exact ones.
#[track_caller]
fn check(cuda: Vec<TensorData>, cpu: Vec<TensorData>, tolerance: f64) {
    assert_eq!(cuda.len(), cpu.len());
    for (number, (cuda, cpu)) in cuda.iter().zip(&cpu).enumerate() {
        assert_eq!(cuda.shape, cpu.shape, "result {number}");
        let largest = cpu.iter::<f64>().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        assert!(largest > 0.0 && largest.is_finite(), "result {number} says nothing");
        for (place, (cuda, cpu)) in cuda.iter::<f64>().zip(cpu.iter::<f64>()).enumerate() {
            // Written so that NaN fails.
            let close = (cuda - cpu).abs() <= tolerance * largest;
            assert!(close, "result {number}, element {place}: {cuda} on the device, {cpu} on the CPU");
        }
    }
}

/// Numbers between -1 and 1 that follow from a seed.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The tolerance of a result that depends on products of matrices: `full` where burn multiplies f32 as they are. On cards
/// whose tensor cores take TF32, which the variable `TF32` says, it rounds factors to 11 bits first.
fn of_products(full: f64) -> f64 {
    if std::env::var_os("TF32").is_some() { 4.0 / 1024.0 } else { full }
}

fn matrix<B: Backend>(rows: usize, columns: usize, seed: u32, device: &Device<B>) -> Tensor<B, 2> {
    Tensor::from_data(TensorData::new(numbers(rows * columns, seed), [rows, columns]), device)
}

#[test]
fn arithmetic() {
    fn program<B: Backend>() -> Vec<TensorData> {
        let device = Default::default();
        let mut results = Vec::new();
        for (rows, columns) in [(1, 1), (1, 31), (33, 1), (17, 65), (100, 100)] {
            let (a, b) = (matrix::<B>(rows, columns, 1, &device), matrix::<B>(rows, columns, 2, &device));
            results.push((a.clone() + b.clone()).into_data());
            results.push((a.clone() - b.clone()).into_data());
            results.push((a.clone() * b.clone()).into_data());
            results.push((a.clone() * 2.5 + 1.0).into_data());
            // The first row to all of them.
            results.push((a.clone() + b.clone().slice([0..1])).into_data());
            results.push(a.clone().transpose().into_data());
            results.push(a.clone().clamp(-0.5, 0.5).into_data());
            let larger: Tensor<B, 2, Int> = a.greater(b).int() + 1;
            results.push(larger.into_data());
        }
        results
    }
    check(program::<Cuda>(), program::<Flex>(), 0.0);
}

#[test]
fn functions() {
    fn program<B: Backend>() -> Vec<TensorData> {
        let a = matrix::<B>(33, 65, 3, &Default::default());
        let positive = a.clone().abs() + 0.1;
        vec![
            a.clone().exp().into_data(),
            positive.clone().log().into_data(),
            positive.clone().sqrt().into_data(),
            a.clone().div(positive.clone()).into_data(),
            a.clone().sin().into_data(),
            a.clone().cos().into_data(),
            a.clone().tanh().into_data(),
            positive.powf_scalar(1.7).into_data(),
            a.clone().erf().into_data(),
            activation::relu(a.clone()).into_data(),
            activation::gelu(a.clone()).into_data(),
            activation::sigmoid(a.clone()).into_data(),
            activation::softmax(a.clone(), 1).into_data(),
            activation::log_softmax(a, 0).into_data(),
        ]
    }
    // Sixteen units in the last place: CUDA promises 1 to 4 for each of them, some are made of several.
    check(program::<Cuda>(), program::<Flex>(), 16.0 * f64::from(f32::EPSILON));
}

#[test]
fn reductions() {
    fn program<B: Backend>() -> Vec<TensorData> {
        let device = Default::default();
        let mut results = Vec::new();
        for (rows, columns) in [(1, 31), (33, 1), (100, 257), (3, 5000)] {
            let a = matrix::<B>(rows, columns, 4, &device);
            results.push(a.clone().sum().into_data());
            results.push(a.clone().mean().into_data());
            for dim in 0..2 {
                results.push(a.clone().sum_dim(dim).into_data());
                results.push(a.clone().mean_dim(dim).into_data());
                results.push(a.clone().max_dim(dim).into_data());
                results.push(a.clone().min_dim(dim).into_data());
            }
        }
        // Products of many such numbers are 0.
        let a = matrix::<B>(7, 9, 4, &device);
        results.push(a.clone().prod_dim(0).into_data());
        results.push(a.prod_dim(1).into_data());
        results
    }
    // Sums of up to 25,700 numbers in another order; their errors hardly ever add up to more than this.
    check(program::<Cuda>(), program::<Flex>(), 1e-4);
}

#[test]
fn places_of_extremes() {
    fn program<B: Backend>() -> Vec<TensorData> {
        let device = Default::default();
        let mut results = Vec::new();
        for (rows, columns) in [(2, 31), (33, 2), (100, 257), (3, 5000)] {
            let a = matrix::<B>(rows, columns, 5, &device);
            for dim in 0..2 {
                // One more, so that a result of zeros says something.
                results.push((a.clone().argmax(dim) + 1).into_data());
                results.push((a.clone().argmin(dim) + 1).into_data());
            }
        }
        results
    }
    check(program::<Cuda>(), program::<Flex>(), 0.0);
}

#[test]
fn matrix_products() {
    fn program<B: Backend>() -> Vec<TensorData> {
        let device = Default::default();
        let product = |(m, k, n): (usize, usize, usize)| {
            matrix::<B>(m, k, 6, &device).matmul(matrix::<B>(k, n, 7, &device)).into_data()
        };
        [(1, 1, 1), (2, 3, 4), (1, 100, 33), (33, 100, 1), (31, 33, 17), (64, 64, 64), (128, 256, 64)]
            .map(product)
            .to_vec()
    }
    check(program::<Cuda>(), program::<Flex>(), of_products(1e-5));
}

#[test]
fn half_precision() {
    fn program<B: Backend>() -> Vec<TensorData> {
        let device = Default::default();
        let mut results = Vec::new();
        for (m, k, n) in [(2, 3, 4), (31, 33, 17), (64, 64, 64)] {
            let (a, b) = (matrix::<B>(m, k, 8, &device), matrix::<B>(k, n, 9, &device));
            results.push((a.clone() * 0.5 + 1.0).into_data());
            results.push(a.clone().sum_dim(1).into_data());
            results.push(a.matmul(b).into_data());
        }
        results
    }
    // A half has 11 bits; the CPU's results are of single precision, and sums here have up to 64 terms.
    check(program::<Cuda<f16>>(), program::<Flex>(), 16.0 / 2048.0);
}

/// A perceptron with one hidden layer.
#[derive(Module, Debug)]
struct Perceptron<B: Backend> {
    hidden: Linear<B>,
    output: Linear<B>,
}

impl<B: Backend> Perceptron<B> {
    fn new(device: &Device<B>) -> Self {
        let linear = |inputs, outputs, seed| {
            let mut linear = LinearConfig::new(inputs, outputs).init(device);
            linear.weight = Param::from_tensor(matrix(inputs, outputs, seed, device));
            linear.bias = Some(Param::from_tensor(matrix(1, outputs, seed + 1, device).squeeze_dim(0)));
            linear
        };
        Perceptron { hidden: linear(12, 20, 10), output: linear(20, 5, 12) }
    }

    fn forward(&self, inputs: Tensor<B, 2>) -> Tensor<B, 2> {
        self.output.forward(activation::relu(self.hidden.forward(inputs)))
    }
}

/// Some steps of training: the losses, then the gradients of the last step, then the weights.
fn train<B: AutodiffBackend>(mut optimizer: impl Optimizer<Perceptron<B>, B>, rate: f64) -> Vec<TensorData> {
    let device = Default::default();
    let inputs = matrix::<B>(32, 12, 14, &device);
    let classes: Vec<i32> = (0..32).map(|row| row * 7 % 5).collect();
    let classes = Tensor::<B, 1, Int>::from_data(TensorData::new(classes, [32]), &device);
    let mut model = Perceptron::new(&device);
    let mut results = Vec::new();
    for step in 0..5 {
        let loss = CrossEntropyLossConfig::new()
            .init(&device)
            .forward(model.forward(inputs.clone()), classes.clone());
        let gradients = loss.backward();
        results.push(loss.into_data());
        if step == 4 {
            for linear in [&model.hidden, &model.output] {
                results.push(linear.weight.grad(&gradients).expect("it was used").into_data());
                let bias = linear.bias.as_ref().expect("it has one");
                results.push(bias.grad(&gradients).expect("it was used").into_data());
            }
        }
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimizer.step(rate, model, gradients);
    }
    for linear in [&model.hidden, &model.output] {
        results.push(linear.weight.val().into_data());
    }
    let loss = |step: usize| results[step].iter::<f64>().next().expect("a loss is a number");
    assert!(loss(4) < loss(0), "it learns: from {} to {}", loss(0), loss(4));
    results
}

#[test]
fn training_by_gradient_descent() {
    check(
        train::<Autodiff<Cuda>>(SgdConfig::new().init(), 0.1),
        train::<Autodiff<Flex>>(SgdConfig::new().init(), 0.1),
        of_products(1e-4),
    );
}

#[test]
fn training_by_adam() {
    check(
        train::<Autodiff<Cuda>>(AdamConfig::new().init(), 0.01),
        train::<Autodiff<Flex>>(AdamConfig::new().init(), 0.01),
        of_products(1e-3),
    );
}

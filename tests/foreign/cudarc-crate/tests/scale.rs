//! These need a GPU, or one that is emulated.

#[test]
fn every_value_is_scaled() {
    for n in [1, 31, 33, 1000, 5000] {
        let values: Vec<f32> = (0..n).map(|value| value as f32).collect();
        let expected: Vec<f32> = values.iter().map(|value| value * 1.5).collect();
        assert_eq!(cudarc_crate::scale(&values, 1.5).expect("the GPU works"), expected, "{n} values");
    }
}

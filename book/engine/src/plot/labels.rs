//! Labels at line ends: placed beside their lines, moved apart where they would cover each other.

/// Moves labels up or down so that none covers another and all stay between `top` and `bottom`, each as near to where it
/// wants to be as the others allow. `wanted` are the places of their centres; the answer is in the same order.
pub(super) fn spread(wanted: &[f64], height: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));

    // Blocks of labels that touch. A block stands where the mean of its members wants to be, and takes in the block above
    // it while they overlap: the least squares answer, in one pass.
    struct Block {
        members: usize,
        first_centre: f64,
    }
    let mut blocks: Vec<Block> = Vec::new();
    for &index in &order {
        let mut block = Block { members: 1, first_centre: wanted[index] };
        while let Some(above) = blocks.last() {
            if above.first_centre + above.members as f64 * height <= block.first_centre {
                break;
            }
            // Where the first member of the joined block wants to be, by each half.
            let offset = above.members as f64 * height;
            let members = above.members + block.members;
            let first_centre = (above.first_centre * above.members as f64
                + (block.first_centre - offset) * block.members as f64)
                / members as f64;
            block = Block { members, first_centre };
            blocks.pop();
        }
        blocks.push(block);
    }

    let mut placed = vec![0.0; wanted.len()];
    let mut next = order.iter();
    for block in &blocks {
        for member in 0..block.members {
            if let Some(&index) = next.next() {
                placed[index] = block.first_centre + member as f64 * height;
            }
        }
    }
    // Push what hangs over an edge back inside, from the bottom up and then from the top down.
    let mut floor = bottom - height / 2.0;
    for &index in order.iter().rev() {
        placed[index] = placed[index].min(floor);
        floor = placed[index] - height;
    }
    let mut ceiling = top + height / 2.0;
    for &index in &order {
        placed[index] = placed[index].max(ceiling);
        ceiling = placed[index] + height;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn labels_that_do_not_touch_stay() {
        assert_eq!(spread(&[50.0, 20.0, 80.0], 10.0, 0.0, 100.0), [50.0, 20.0, 80.0]);
    }

    #[test]
    fn labels_that_touch_share_the_way() {
        assert_eq!(spread(&[50.0, 50.0], 10.0, 0.0, 100.0), [45.0, 55.0]);
        assert_eq!(spread(&[52.0, 50.0, 48.0], 10.0, 0.0, 100.0), [60.0, 50.0, 40.0]);
    }

    #[test]
    fn labels_stay_inside() {
        assert_eq!(spread(&[1.0, 2.0], 10.0, 0.0, 100.0), [5.0, 15.0]);
        assert_eq!(spread(&[99.0, 98.0], 10.0, 0.0, 100.0), [95.0, 85.0]);
    }

    #[test]
    fn no_two_labels_ever_overlap() {
        let wanted = [10.0, 11.0, 11.5, 30.0, 31.0, 95.0, 96.0, 99.0];
        let mut placed = spread(&wanted, 9.0, 0.0, 100.0);
        placed.sort_by(f64::total_cmp);
        assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= 9.0 - 1e-9), "{placed:?}");
    }
}

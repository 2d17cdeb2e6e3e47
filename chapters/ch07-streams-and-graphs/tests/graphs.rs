//! Chains against the CPU, by hand and as graphs. Runs on the GPU if there is one, else on the emulated GPU.

use std::sync::{Mutex, PoisonError};

use ch07_streams_and_graphs::graphs::{Chain, Link};

/// While a stream captures, nobody may wait for the whole context, as each of these tests does.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn chains_of_every_length_and_kind() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = lab::open_device().unwrap();
    let mut chain = Chain::new(&context).unwrap();
    for links in [1, 2, 31, 33, 1000] {
        for link in [Link::Ordinary, Link::Early] {
            if !chain.has(link) {
                continue;
            }
            chain.by_hand(link, links, 3).unwrap();
            chain.check(links, 3).unwrap();
            let graph = chain.capture(link, links, 5).unwrap();
            for _ in 0..3 {
                graph.launch().unwrap();
                chain.check(links, 5).unwrap();
            }
        }
        let built = chain.build(links, 7).unwrap();
        built.launch().unwrap();
        chain.check(links, 7).unwrap();
        built.set_amount(9).unwrap();
        built.launch().unwrap();
        chain.check(links, 9).unwrap();
        let other = chain.capture(Link::Ordinary, links, 11).unwrap();
        built.update_from(&other).unwrap();
        built.launch().unwrap();
        chain.check(links, 11).unwrap();
    }
    chain.check(1, 1).unwrap_err();
}

#[test]
fn a_graph_of_another_shape_is_no_update() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = lab::open_device().unwrap();
    let mut chain = Chain::new(&context).unwrap();
    let built = chain.build(3, 1).unwrap();
    let longer = chain.capture(Link::Ordinary, 4, 1).unwrap();
    built.update_from(&longer).unwrap_err();
    built.launch().unwrap();
    chain.check(3, 1).unwrap();
}

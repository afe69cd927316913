//! Stones that fall and come to rest on the ground. The page drops them, moves
//! the world on, and draws what this says.

#![cfg(target_arch = "wasm32")]

use rapier2d::prelude::*;
use wasm_bindgen::prelude::wasm_bindgen;

/// The ground and what lies on it.
#[wasm_bindgen]
#[derive(Default)]
pub struct Pit {
    world: PhysicsWorld,
    stones: Vec<RigidBodyHandle>,
}

#[wasm_bindgen]
impl Pit {
    /// An empty pit.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        let mut pit = Self::default();
        let ground = ColliderBuilder::cuboid(50.0, 0.5);
        pit.world.insert_collider(ground, None);
        pit
    }

    /// Drops a stone from `height` above the middle of the ground.
    pub fn drop_stone(&mut self, height: f32) {
        let body = RigidBodyBuilder::dynamic().translation(Vector::new(0.0, height));
        let (stone, _) = self.world.insert(body, ColliderBuilder::ball(0.5));
        self.stones.push(stone);
    }

    /// Moves the world on by a sixtieth of a second.
    pub fn step(&mut self) {
        self.world.step();
    }

    /// The height of each stone.
    #[must_use]
    pub fn heights(&self) -> Vec<f32> {
        let heights = self.stones.iter();
        heights
            .map(|stone| self.world.bodies[*stone].translation().y)
            .collect()
    }
}

"""Native draws are NumPy's, number by number."""

import numpy as np
from gymnasium.utils import seeding

from evergait.vector import make
from evergait.vector.generators import Generators, normal_table


def test_the_ziggurat_is_numpys() -> None:
    width, bound = normal_table()
    words = np.random.PCG64(5).random_raw(200_000)
    normals = np.random.Generator(np.random.PCG64(5))
    layer, steps = words & np.uint64(0xFF), words >> np.uint64(9) & np.uint64(2**52 - 1)
    mine = steps * width[layer] * np.where(words >> np.uint64(8) & np.uint64(1), -1.0, 1.0)
    taken = steps < bound[layer]
    first_refused = int(np.argmin(taken))
    assert 0.98 < taken.mean() < 0.999
    assert first_refused > 5
    # Up to the first that only NumPy can draw, each word is one normal; from then on they are out of step.
    assert (normals.standard_normal(first_refused) == mine[:first_refused]).all()
    for row in np.flatnonzero(taken)[:3000]:
        bits = np.random.PCG64(5)
        bits.advance(int(row))
        assert np.random.Generator(bits).standard_normal() == mine[row]


def test_generators_go_on_where_they_stood() -> None:
    ours, right = Generators(2), seeding.np_random(9)[0]
    ours.seed(1, 9)
    for _ in range(3):
        generator = ours.get(1)
        assert generator.uniform(size=4).tolist() == right.uniform(size=4).tolist()
        ours.put(1, generator)
    before = ours.words.copy()
    ours.seed(1, None)
    assert (ours.words == before).all()


def test_thousands_of_resets_draw_what_gymnasium_draws() -> None:
    for identifier in ("HalfCheetah-v5", "InvertedDoublePendulum-v5", "Hopper-v5"):
        env = make(identifier, 3)
        env.reset(seed=4)
        source = env.robots.source  # type: ignore[attr-defined]
        generators = [seeding.np_random(4 + i)[0] for i in range(3)]
        for _ in range(300):
            for i, generator in enumerate(generators):
                qpos, qvel = source.draw(env.variants[i], generator)
                assert env.robots.arrays.position[i].tolist() == qpos.tolist()  # type: ignore[attr-defined]
                assert env.robots.arrays.velocity[i].tolist() == qvel.tolist()  # type: ignore[attr-defined]
            env.reset()

"""The Python binding: chains by hand, seeds and masks, states, send and recv, refusals.
usage: stint_env_test.py RALLY.BIN"""
import sys

import numpy as np

import stint_env


def chain(**keywords):
    return stint_env.VectorEnv(None, 4, kind="chain", stack=1, threads=2, **keywords)


def run(envs, steps):
    """States, rewards and ends of steps with action 1."""
    seen = []
    for _ in range(steps):
        obs, reward, ended, cut, info = envs.step(np.ones(4, np.int32))
        seen.append((obs.argmax(axis=3).ravel().tolist(), reward.tolist(), ended.tolist()))
    return seen


def main(rom):
    envs = chain(seed=5)
    obs, _ = envs.reset()
    assert obs.shape == (4, 1, 1, 8) and obs.dtype == np.uint8
    assert (obs.argmax(axis=3) == 0).all() and (obs.max(axis=3) == 255).all()
    first = run(envs, 30)
    before = [0] * 4
    was_end = [False] * 4
    for states, rewards, ends in first:
        for i in range(4):  # on by one, back to the first, or the end behind the last
            assert states[i] in (0, before[i] + 1) or (ends[i] and before[i] == 7)
            assert rewards[i] == (1.0 if ends[i] else 0.0)
            assert not was_end[i] or states[i] == 0  # a new episode
        before, was_end = states, ends
    assert any(any(ends) for _, _, ends in first)

    envs.reset(seed=7)
    a = run(envs, 20)
    envs.reset(seed=[7, 7, 7, 7])
    assert run(envs, 20) == a
    envs.reset(seed=8)
    assert run(envs, 20) != a

    state = envs.save(2)
    later = run(envs, 10)
    envs.load(2, state)
    assert [s[0][2] for s in run(envs, 10)] == [s[0][2] for s in later]
    envs.close()
    envs.close()

    apart, together = chain(seed=3), chain(seed=3)
    apart.reset()
    together.reset()
    want = run(together, 12)
    apart.send([0, 1, 2, 3], [1, 1, 1, 1])
    count = [0] * 4
    while sum(count) < 48:
        which, obs, reward, ended, cut, info = apart.recv(1)
        again = []
        for k, i in enumerate(which):
            assert obs[k].argmax() == want[count[i]][0][i]
            assert reward[k] == want[count[i]][1][i]
            count[i] += 1
            if count[i] < 12:
                again.append(i)
        apart.send(again, [1] * len(again))

    for call, error in ((lambda: together.step(np.full(4, 2)), stint_env.Error),
                        (lambda: together.step(np.zeros(3)), ValueError),
                        (lambda: together.ram(4), IndexError),
                        (lambda: apart.recv(1), stint_env.Error),
                        (lambda: chain(speed=3), TypeError),
                        (lambda: stint_env.VectorEnv("/nowhere", 1), stint_env.Error)):
        try:
            call()
        except error as e:
            assert str(e)
        else:
            raise AssertionError("not refused")

    game = stint_env.VectorEnv(rom, 2, game="none", reward="ram:0x81-ram:0x80",
                               done="ram:0x80==21|ram:0x81==21", threads=1)
    obs, _ = game.reset(seed=1)
    assert obs.shape == (2, 4, 84, 84) and obs[:, 3].max() > 0 and obs[:, 2].max() == 0
    for _ in range(4):
        obs, reward, ended, cut, info = game.step([0, 2])
    assert (obs.max(axis=(2, 3)) > 0).all() and game.ram(0).shape == (128,)
    if stint_env.gymnasium is not None:
        assert game.action_space.contains(game.action_space.sample())
        assert game.observation_space.contains(obs)
    print("ok")


main(sys.argv[1])

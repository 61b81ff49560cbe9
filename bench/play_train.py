#!/usr/bin/env python3
"""Training beside PyTorch on ALE's vector environment: raw frames a second, and for a second of
a CPU, in turns.

    play_train.py [--envs 64] [--horizon 5] [--threads 2] [--seconds 20] [--pairs 3]

Both learn rally (assembled by dasm so that the rules of pong hold) by A2C from four frames of
84 x 84, with the same network, Adam, and an update every `horizon` steps; PyTorch acts in
inference mode and uses all threads, ALE's environments too. Needs ale-py 0.12.1 and PyTorch;
STINT names the program (build/release/stint).
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import ale_py
import numpy as np
import torch
from ale_py._ale_py import ALEVectorInterface
from torch import nn

ROMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recipes", "roms")
GAMMA, LAMBDA, ENTROPY, VALUE, RATE, CLIP = 0.99, 0.95, 0.01, 0.5, 5e-4, 0.5

RECIPE = """[env]
rom = %s
game = pong
envs = %d
[agent]
method = a2c
network = small
horizon = %d
every = %d
entropy = 0.01
lambda = 0.95
[train]
time = %gs
steps = 0
[optimizer]
name = adam
lr = 5e-4
clip = 0.5
[run]
checkpoint_every = 0
"""


class Agent(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(),
            nn.Linear(32 * 9 * 9, 256), nn.ReLU())
        self.policy, self.value = nn.Linear(256, actions), nn.Linear(256, 1)

    def forward(self, frames):
        x = self.trunk(frames.float() / 255)
        return torch.log_softmax(self.policy(x), 1), self.value(x)[:, 0]


def learn(agent, optimizer, frames, action, reward, discount, weight, last):
    """One update from [horizon, envs] of everything."""
    horizon, envs = reward.shape
    logs, value = agent(frames.reshape(-1, 4, 84, 84))
    value = value.reshape(horizon, envs)
    with torch.no_grad():
        after, advantage = agent(last)[1], torch.zeros(horizon, envs)
        behind = torch.zeros(envs)
        for t in reversed(range(horizon)):
            error = reward[t] + discount[t] * after - value[t]
            behind = weight[t] * (error + discount[t] * LAMBDA * behind)
            advantage[t], after = behind, value[t]
        target = advantage + value
    taken = logs.gather(1, action.reshape(-1, 1))[:, 0]
    loss = -(taken * advantage.reshape(-1)).mean()
    loss = loss + VALUE * 0.5 * (weight * (value - target) ** 2).mean()
    loss = loss + ENTROPY * (logs.exp() * logs).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), CLIP)
    optimizer.step()


def peer(rom, args):
    torch.set_num_threads(args.threads)
    vector = ALEVectorInterface(rom_path=rom, num_envs=args.envs, num_threads=args.threads,
                                use_fire_reset=False)
    agent = Agent(len(vector.get_action_set()))
    optimizer = torch.optim.Adam(agent.parameters(), lr=RATE)
    strength = [1.0] * args.envs
    seen = vector.reset(list(range(args.envs)), list(range(args.envs)))[0]
    begins = np.zeros(args.envs, bool)
    shape = (args.horizon, args.envs)
    frames = torch.empty(shape + (4, 84, 84), dtype=torch.uint8)
    action = torch.empty(shape, dtype=torch.long)
    reward, discount, weight = (torch.empty(shape) for _ in range(3))
    count, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < args.seconds:
        for t in range(args.horizon):
            frames[t] = torch.from_numpy(seen)
            with torch.inference_mode():
                action[t] = torch.multinomial(agent(frames[t])[0].exp(), 1)[:, 0]
            vector.send(action[t].tolist(), strength)
            seen, gain, ended, cut, _ = vector.recv()
            reward[t] = torch.from_numpy(gain.astype(np.float32))
            weight[t] = torch.from_numpy(~begins)
            discount[t] = GAMMA * torch.from_numpy(~(ended | begins))
            begins = ended | cut
        learn(agent, optimizer, frames, action, reward, discount, weight, torch.from_numpy(seen))
        count += 4 * args.horizon * args.envs
    return count / (time.perf_counter() - start), count / (time.process_time() - cpu)


def ours(rom, folder, args):
    recipe = os.path.join(folder, "a2c.ini")
    with open(recipe, "w", encoding="ascii") as out:
        out.write(RECIPE % (rom, args.envs, args.horizon, args.horizon, args.seconds))
    before = os.times()
    answer = subprocess.run(
        [os.environ.get("STINT", "build/release/stint"), "train", recipe, "--threads",
         str(args.threads), "--out", os.path.join(folder, "run"), "--force", "--json", "-q"],
        stdout=subprocess.PIPE, check=True)
    after, said = os.times(), json.loads(answer.stdout)
    cpu = after[2] + after[3] - before[2] - before[3]  # user and system time of children
    return said["frames_per_s"], said["env_frames"] / cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--horizon", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--pairs", type=int, default=3)
    args = parser.parse_args()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        rom = os.path.join(folder, "pong.bin")
        subprocess.run(["dasm", "rally.asm", "-f3", "-DPONG=1", "-o" + rom], cwd=ROMS, check=True,
                       stdout=subprocess.DEVNULL)
        for _ in range(args.pairs):
            a, b = ours(rom, folder, args), peer(rom, args)
            ratios.append((a[0] / b[0], a[1] / b[1]))
            print("ours %6.0f raw frames/s, PyTorch %s on ALE's vectors %6.0f, x %.2f; a CPU second "
                  "%6.0f and %6.0f, x %.2f" % (a[0], torch.__version__, b[0], ratios[-1][0], a[1],
                                               b[1], ratios[-1][1]), flush=True)
    print("median of %d pairs, %d environments, horizon %d, %d threads: x %.2f; by CPU time x %.2f" %
          (args.pairs, args.envs, args.horizon, args.threads,
           statistics.median(r for r, _ in ratios), statistics.median(c for _, c in ratios)))


if __name__ == "__main__":
    main()

"""How well DQN learns: urbe's against Stable-Baselines3's, with the same hyper-parameters, steps and test episodes."""

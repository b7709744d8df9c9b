"""How well DQN learns in urbe and in Stable-Baselines3, with the same hyper-parameters, steps and test episodes."""

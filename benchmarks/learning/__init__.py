"""How well urbe's DQN and Stable-Baselines3's learn, with equal hyper-parameters, steps and test episodes."""

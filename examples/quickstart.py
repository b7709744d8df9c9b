"""A robust policy in ten lines: worst-case values of the nominal and the robust policy over the radius."""

import urbe

mdp = urbe.library.machine_replacement(10, discount=0.95)
nominal = urbe.solve(mdp)

print("radius  worst case of the nominal policy  worst case of the robust policy")
for radius in (0.0, 0.3, 0.6, 1.0):
    ball = urbe.L1Ball(radius)
    careless = urbe.evaluate_policy(mdp, nominal.policy, ball)
    careful = urbe.solve(mdp, ball)
    assert urbe.certify(careful).holds
    print(f"{radius:6.1f}  {careless.lower[0]:32.4f}  {careful.lower[0]:31.4f}")

"""From a posterior to a policy with a guarantee: planners that need more than one solve."""

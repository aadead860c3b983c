"""The expressions of own rules, in CEL: compiled and evaluated in a process of their own.

That process has a bound on memory and on the time of each expression, and whoever exceeds one ends it; it is then
started anew, and the expression rests for a while. What decides knows nothing of it: it asks
(`webhook.kit.own_rules`), and the service and the commands have it answered here.
"""

from yaml import ScalarNode

class SafeConstructor:
    def construct_object(self, node: ScalarNode) -> object: ...

from yaml import YAMLError

class ReaderError(YAMLError):
    position: int

"""What a person's message asks for, told by cheap rules in English, German, French and Spanish: nothing but words, a
look at the project, a command, or a change. Pure.

The rules lean to "words": a message that is wrongly taken for work costs an answer at once, one that is wrongly taken
for talk costs nothing but a guard (`tools.moves`).
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

Demand = Literal["talk", "look", "run", "change"]
"""`talk`: an answer will do. `look`: a question about a file that is named. `run`: something is to be run, nothing
changed. `change`: files are to be changed."""

_SUFFIXES: Final = (
    "py|pyi|js|mjs|cjs|ts|tsx|jsx|sh|bash|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|lua|sql|html|css|scss|vue|json|"
    "ya?ml|toml|cfg|ini|conf|md|rst|txt|csv|xml|gradle|lock|env|service|tf|ipynb|r|pl"
)
# A name before the dot, so that "e.g." and "2.5" are none; "Node.js" and its like are products.
_FILE: Final = re.compile(
    rf"(?<![\w/@.-])(?!(?:node|vue|next|three|d3|express|asp|react|nuxt|deno|p5|chart)\.(?:js|ts)\b)"
    rf"(?:[\w.-]+/)*[\w-]*[A-Za-z_][\w.-]*\.(?:{_SUFFIXES})(?![\w/-])",
    re.IGNORECASE,
)
_SPECIAL_FILE: Final = re.compile(r"\b(?:makefile|dockerfile|readme|changelog|\.gitignore)\b", re.IGNORECASE)
_FOLDER: Final = re.compile(r"(?<![\w/:.])(?:\.{1,2}/)?(?:src|lib|tests?|docs?|app|scripts?|pkg|cmd)/[\w./-]*")
_QUOTED: Final = re.compile(r"```.*?```|~~~.*?~~~", re.DOTALL)
_COMMAND: Final = re.compile(r"`([^`\n]{2,200})`")
# What is pasted (a picture as text, a log) says nothing of what is wanted, and would take minutes to look through.
_NO_WORD: Final = re.compile(r"\S{200,}")
_MOST: Final = 4_000  # characters of the beginning, and of the end
_CALL: Final = re.compile(r"\b[a-z_]\w*\(\)", re.IGNORECASE)

# Words are compared without accents. What is about a project:
_THINGS: Final = (
    r"tests?|testcase|unittests?|test ?suite|suite|bugs?|fehler|erreurs?|errores|error|functions?|funktion(?:en)?|"
    r"fonctions?|"
    r"funcion(?:es)?|methods?|methoden?|methodes?|metodos?|class(?:es)?|klassen?|clases?|modules?|moduls?|modulos?|"
    r"files?|datei(?:en)?|fichiers?|archivos?|ficheros?|scripts?|skript(?:e|s)?|code|codigo|quelltext|project|projekt|"
    r"projet|proyecto|repo(?:sitory)?|build|linter|lint|imports?|variables?|parser|endpoints?|config|konfiguration|"
    r"package|paket|dependenc(?:y|ies)|abhangigkeit(?:en)?|type ?hints?|docstrings?|logging|flags?|option(?:en|s)?|"
    r"refactoring|cli|api|readme|changelog|makefile|dockerfile|todos?|exceptions?|traceback|typos?|folder|ordner|"
    r"dossier|carpeta|branch|commits?|diff|lines?|zeilen?|prueba|pruebas"
)
_THING: Final = re.compile(rf"\b(?:{_THINGS})\b")
# What is about words, whatever the verb.
_WORDS: Final = re.compile(
    r"\b(?:poem|haiku|story|song|joke|essay|e-?mail|letter|sentences?|paragraph|grammar|spelling of|translation|"
    r"recipe|speech|"
    r"summary|gedicht|geschichte|witz|brief|satz|satze|ubersetzung|rezept|grammatik|poeme|histoire|blague|lettre|"
    r"phrase|"
    r"recette|traduction|poema|cuento|chiste|carta|frase|receta|traduccion|list of|liste von|liste de|lista de|example|"
    r"beispiel|exemple|ejemplo|interview|tweet|slogan|headline|outline|plan for|speisekarte|einkaufsliste)\b"
)
# Verbs that mean a change of a project by themselves...
_STRONG: Final = (
    r"fix|repair|debug|refactor|implement|mend|"
    r"behebe?n?|repariere?n?|fixe?n?|korrigiere?n?|implementiere?n?|refaktoriere?n?|refactore|"
    r"repare[rz]?|corrige[rz]?|debogue[rz]?|implemente[rz]?|refactorise[rz]?|resou[sd]\w*|"
    r"arregl(?:a|ar|e|alo|ala|en)|corrig(?:e|ir|elo|ela)|corrija|repar(?:a|ar|e)|soluciona(?:r|lo)?|depura(?:r)?|"
    r"implementa(?:r)?|refactoriza(?:r)?"
)
# ...and those that do with a thing of the project.
_WEAK: Final = (
    r"add|solve|correct|change|update|remove|delete|write|create|make|move|replace|rename|edit|modify|rewrite|"
    r"convert|insert|extend|"
    r"split|extract|bump|revert|undo|commit|clean up|improve|simplify|optimi[sz]e|port|migrate|generate|set up|use|"
    r"handle|document|adjust|append|increase|decrease|enable|disable|get|let|"
    r"fuge?|fugen|hinzufugen|andere?|andern|aktualisiere?n?|entferne?n?|losche?n?|schreibe?n?|schreib|erstelle?n?|"
    r"mache?n?|mach|verschiebe?n?|ersetze?n?|benenne?n?|umbenennen|bearbeite?n?|erganze?n?|erweitere?n?|"
    r"vereinfache?n?|baue?n?|bau|bring|passe?|anpassen|lege?|raume?|"
    r"ajoute[rz]?|change[rz]?|modifie[rz]?|supprime[rz]?|enleve[rz]?|ecri(?:s|re|vez)|cree[rz]?|fai(?:s|re|tes)|"
    r"deplace[rz]?|remplace[rz]?|renomme[rz]?|ameliore[rz]?|simplifie[rz]?|mets|mettre|mettez|"
    r"anad(?:e|ir|elo)|agrega(?:r)?|cambia(?:r)?|actualiza(?:r)?|elimina(?:r)?|borra(?:r)?|quita(?:r)?|escrib(?:e|"
    r"ir|a)|"
    r"crea(?:r)?|haz|hacer|mueve|mover|reemplaza(?:r)?|renombra(?:r)?|edita(?:r)?|modifica(?:r)?|mejora(?:r)?|pon|poner"
)
_RUN: Final = (
    r"run|execute|start|launch|test|check|try|verify|prove|lint|format|compile|build|"
    r"fuhre?|fuhren|ausfuhren|starte?n?|teste?n?|prufe?n?|pruf|lass|beweise?n?|uberprufe?n?|"
    r"lance[rz]?|execute[rz]?|teste[rz]?|verifie[rz]?|demarre[rz]?|"
    r"ejecuta(?:r)?|corre(?:r)?|prueba|probar|comprueba|verifica(?:r)?|lanza(?:r)?"
)
_VERB: Final = re.compile(rf"(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK})|(?P<run>{_RUN}))\b(?!')")
# What stands before a verb that is a request.
_LEAD: Final = re.compile(
    r"(?:(?:ok(?:ay)?|well|now|then|next|first|also|just|so|hey|hi|hello|thanks?|great|good|yes|please|pls|kindly|"
    r"go ahead and|"
    r"try to|go and|help me(?: to)?|let'?s|i(?:'d| would)? (?:like|want|need) you to|you (?:should|need to|must|"
    r"have to|can)|"
    r"we (?:need|have|should)(?: to)?|i need to|i want to|make sure (?:to|you)|your task is to|the task is to|"
    r"find (?:out )?(?:why|the (?:bug|error|problem|cause|reason))|"
    r"ja|nun|jetzt|dann|danach|anschliessend|auch|mal|hallo|bitte|du sollst|wir mussen|hilf mir|"
    r"oui|bonjour|salut|puis|ensuite|aussi|maintenant|d'abord|s'il te plait|s'il vous plait|stp|svp|merci de|"
    r"veuillez|il faut|"
    r"je veux que tu|tu dois|aide[- ]moi a|"
    r"si|hola|luego|despues|tambien|ahora|primero|por favor|quiero que|necesito que|hay que|tienes que|ayudame a)"
    r"[\s,:!-]+)*"
)
_POLITE: Final = re.compile(
    r"\b(?:can|could|would|will|won't|can't) (?:you|u)(?: please| maybe| also| just| kindly| go ahead and| try to|"
    r" help me(?: to)?)*\s+|"
    r"\b(?:would you mind|do you mind)\s+|"
    r"\b(?:kannst|konntest|wurdest|willst|magst) du\b|\b(?:konnen|konnten|wurden) sie\b|"
    r"\b(?:peux|pourrais|veux)[- ]tu\s+|\btu (?:peux|pourrais)\s+|\b(?:pouvez|pourriez)[- ]vous\s+|"
    r"\b(?:puedes|podrias|puede|podria)\s+"
)
_GERMAN: Final = re.compile(r"(?:kannst|konntest|wurdest|willst|magst|konnen|konnten|wurden)\b")
_GERMAN_END: Final = re.compile(
    r"\b(?:(?P<strong>beheben|reparieren|fixen|korrigieren|implementieren|refaktorieren|losen)|(?P<weak>hinzufugen|"
    r"andern|"
    r"aktualisieren|entfernen|loschen|schreiben|erstellen|verschieben|ersetzen|umbenennen|bearbeiten|erganzen|"
    r"erweitern|"
    r"anpassen|einbauen|anlegen)|(?P<run>ausfuhren|starten|testen|prufen|laufen lassen))\s*[?!.]*$"
)
_QUESTION: Final = re.compile(
    r"(?:(?:and|but|so|ok(?:ay)?|hi|hey|hello|well|please|und|aber|also|et|mais|y|pero)[\s,]+)*"
    r"(?:how|why|what(?:'s)?|when|where|which|who|whose|is|are|was|were|does|do|did|has|have|should i|should we|"
    r"can i|can we|"
    r"could i|may i|isn't|aren't|doesn't|don't you|"
    r"wie|warum|wieso|weshalb|was|wann|wo|welche[rsnm]?|wer|ist|sind|hat|haben|gibt|kann (?:ich|man)|"
    r"soll(?:te)? (?:ich|man)|"
    r"comment|pourquoi|qu'?est|que|quoi|quel(?:le)?s?|quand|ou|qui|est-ce|y a-t-il|peut-on|puis-je|dois-je|"
    r"como|por que|cual(?:es)?|cuando|donde|quien|es|hay|puedo|se puede|debo)\b"
)
_ABOUT_HOW: Final = re.compile(
    r"\b(?:how (?:to|do|can|would|should|i|you|one)|wie (?:man|ich|kann|geht)|comment|como se|como puedo|"
    r"the difference|"
    r"den unterschied|la difference|la diferencia|what happens|was passiert|i wonder|best way to|steps to|ways to)\b"
)
_EXPLAINS: Final = re.compile(
    r"(?:explain|describe|tell me|teach|summari[sz]e|compare|list|show me|give me|translate|define|suggest|recommend|"
    r"erklar\w*|beschreib\w*|sag mir|vergleich\w*|ubersetz\w*|fass\w* |explique[rz]?|decri\w*|dis[- ]moi|resume|"
    r"compare|"
    r"tradui\w*|explica\w*|describe|dime|resume|compara|traduce)\b"
)
_COMPLAINT: Final = re.compile(
    r"\b(?:fails?|failing|failed|broken|breaks|crash(?:es|ed|ing)?|wrong|does(?:n't| not) work|not working|doesn't|"
    r"isn't|"
    r"raises?|throws?|subtracts?|loses?|bug|should (?:be|return|print|give|have|not)|instead of|off by|never|missing|"
    r"schlagt fehl|fehlgeschlagen|kaputt|falsch|geht nicht|funktioniert nicht|lauft nicht|sturzt ab|fehlt|statt|sollte|"
    r"echoue(?:nt)?|casse|faux|fausse|ne (?:marche|fonctionne)(?:nt)? (?:pas|plus)|plante|au lieu de|devrait|manque|"
    r"falla[n]?|roto|rota|mal|no funciona[n]?|incorrect[oa]|en vez de|deberia|falta)\b"
)
_BREAK: Final = re.compile(r"(?<=[.!?;:\n])\s+|\n+")
_CLAUSE: Final = re.compile(
    r"\s*[,;:\u2013\u2014]\s*|\s+-\s+|\s+(?:and|then|but|und|dann|aber|et|puis|mais|y|luego|pero|so that)\s+"
)
_AFTER: Final = re.compile(r"(?:[,;:\u2013\u2014-]|\b(?:and|so|then|und|dann|et|puis|y|luego))\s*(?:please |bitte )?$")
_NO_VERB: Final = re.compile(r"[=(]|\.\w")
# Code that is to be shown: it belongs to no project.
_SAMPLE: Final = re.compile(
    r"\b(?:write|create|generate|make|schreib\w*|erstell\w*|ecri\w*|cree[rz]?|escrib\w*|crea[r]?)\s(?:me |mir |moi )?"
    r"(?:an?|some|eine?n?|une?|una)\s[^.!?]*?\b(?:functions?|class|scripts?|methods?|code|funktion|klasse|skript|"
    r"fonction|"
    r"classe|funcion|clase)\b"
)
_HERE: Final = re.compile(
    r"\b(?:here|file|folder|module|project|repo(?:sitory)?|codebase|tests?|the (?:code|script|class|function)|hier|"
    r"datei|ordner|"
    r"modul|projekt|ici|fichier|dossier|projet|aqui|archivo|carpeta|modulo|proyecto)\b"
)
_ON_TESTS: Final = re.compile(
    rf"\b(?:{_WEAK}|cover|abdecken|couvr\w*|cubr\w*)\b[^.!?\n]{{0,40}}\b(?:(?:unit)?tests?|testcases?|testfall\w*|"
    rf"specs?|pruebas?)\b|"
    r"\b(?:tests?|test_\w+\S*) (?:itself |selbst )?(?:is|are|ist|sind|est|sont|esta|es|has|have) (?:itself |selbst )?"
    r"(?:wrong|outdated|incorrect|obsolete|stale|falsch|veraltet|faux|perimes?|mal|obsolet\w*|typos?)\b|"
    r"\b(?:fix|correct|adapt|adjust|repair) (?:the )?(?:expectation|assertion|expected value)s?\b"
)
_NOT_ON_TESTS: Final = re.compile(
    r"\b(?:make|get|let|mach\w*|bring|lass|fai[st]\w*|haz|hacer)\b[^.!?\n]{0,40}\b(?:tests?|test_\w+\S*|pruebas?)\b"
    r"[^.!?\n]{0,20}\b(?:pass|green|run|work|succeed|grun|laufen|durchlaufen|bestehen|passer|passent|pasar|pasen)\b|"
    r"\b(?:do not|don't|never|without|nicht|ohne|ne|sans|no|sin)\b[^.!?\n]{0,30}\b(?:tests?|pruebas?)\b"
)
_NEW: Final = re.compile(
    r"\b(?:write|create|add|generate|implement|new|set up|extract|split|move|port|convert|document|save|"
    r"schreib\w*|erstell\w*|fug\w*|hinzufugen|neue?[rsnm]?|leg\w*|anlegen|implementier\w*|speicher\w*|"
    r"ecri\w*|cree[rz]?|ajoute[rz]?|nouve\w*|implemente[rz]?|enregistre\w*|"
    r"escrib\w*|crea[r]?|anad\w*|agrega\w*|nuev[oa]s?|implementa\w*|guarda\w*)\b(?![(.])"
)
_RUNNING: Final = re.compile(
    r"\b(?:run|running|execute|launch|command|fuhre?|fuhren|ausfuhren|starte?n?|befehl|lance[rz]?|commande|ejecuta(?:r)?|"
    r"corre(?:r)?|comando)\b(?![(.])"
)
_SCRIPT: Final = re.compile(r"\b[\w-]+\.(?:sh|bash)\b")
_GIT: Final = re.compile(r"\b(?:git|commit\w*|branch(?:es)?|diff|committe\w*|comite\w*|confirma\w*)\b")
_REPAIRS: Final = re.compile(rf"\b(?:{_STRONG})\b")


def demand_of(text: str) -> Demand:
    """Return what a message asks for."""
    plain = _plain(text)
    about = bool(_FILE.search(plain) or _SPECIAL_FILE.search(plain) or _FOLDER.search(plain))
    found: Demand = "talk"
    asked = True
    for sentence in _BREAK.split(plain):
        asks = _is_question(sentence)
        asked = asked and asks
        kind = _in_question(sentence, about=about) if asks else _in_sentence(sentence, about=about)
        if kind == "change":
            return "change"
        found = kind if kind != "talk" else found
    about = about or bool(_CALL.search(plain))
    if not asked and about and _COMPLAINT.search(plain) and not _EXPLAINS.match(plain) and not _ABOUT_HOW.search(plain):
        return "change"
    if found == "talk" and (_FILE.search(plain) or _FOLDER.search(plain)) and not _ABOUT_HOW.search(plain):
        return "look"
    return found


def asks_for_work(text: str) -> bool:
    """Say whether a message wants something done, rather than said."""
    return demand_of(text) in {"run", "change"}


def repairs(text: str) -> bool:
    """Say whether what is to be changed is code that does not work."""
    plain = _plain(text)
    return bool(_REPAIRS.search(plain) or _COMPLAINT.search(plain))


def wants_tests_changed(text: str) -> bool:
    """Say whether the tests themselves are to be written or changed."""
    plain = _plain(text)
    rest = _NOT_ON_TESTS.sub(" ", plain)
    return bool(_ON_TESTS.search(rest))


def wants_new(text: str) -> bool:
    """Say whether something is to be made that is not there yet."""
    return _NEW.search(_plain(text)) is not None


def wants_run(text: str) -> bool:
    """Say whether something is to be run, by whatever name."""
    plain = _plain(text)
    return bool(_RUNNING.search(plain) or _SCRIPT.search(plain))


def wants_git(text: str) -> bool:
    """Say whether git is spoken of."""
    return _GIT.search(_plain(text)) is not None


def commands_in(text: str) -> tuple[str, ...]:
    """Return what a message quotes in backticks and looks like a command: more than one word, no code."""
    found = (" ".join(each.split()) for each in _COMMAND.findall(_QUOTED.sub(" ", text)))
    return tuple(dict.fromkeys(each for each in found if re.fullmatch(r"[\w./-]+(?: [^(){}=;]+)+", each)))


def is_test(path: str) -> bool:
    """Say whether a file holds tests, by its name or its folder."""
    *folders, name = path.lower().split("/")
    if any(folder in {"test", "tests", "__tests__", "spec", "specs"} for folder in folders):
        return True
    return _TEST_NAME.fullmatch(name) is not None


_TEST_NAME: Final = re.compile(
    r"(?:test|tests|conftest|run_tests?|check|checks)\.\w+|test[_-].*|.*[_.-](?:test|tests|spec|check)\.\w+|.*_spec\.rb"
)


@lru_cache(maxsize=8)
def _plain(text: str) -> str:
    """Return text in lower case, without accents, blocks of code and what is no word; of a long one both ends."""
    text = _NO_WORD.sub(" ", _QUOTED.sub(" ", text))
    text = text if len(text) <= 2 * _MOST else f"{text[:_MOST]}\n{text[-_MOST:]}"
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("ß", "ss").lower()
    return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each)).strip()


def _is_question(sentence: str) -> bool:
    start = sentence.lstrip("¿¡ ")
    return start.rstrip().endswith("?") or any(each.match(start) is not None for each in (_QUESTION, _POLITE))


def _in_question(sentence: str, *, about: bool) -> Demand:
    """Look for a request that is put as a question."""
    for polite in _POLITE.finditer(sentence):
        if _QUESTION.match(sentence) and polite.start() and not _AFTER.search(sentence, 0, polite.start()):
            continue  # "how would you ..."
        rest = sentence[polite.end() :].strip(" ,")
        if _GERMAN.match(sentence[polite.start() :]):
            end = _GERMAN_END.search(rest)
            kind = _meant(end, rest, about=about) if end else "talk"
        else:
            kind = _in_sentence(rest, about=about)
        if kind != "talk":
            return kind
    return "talk"


def _in_sentence(sentence: str, *, about: bool) -> Demand:
    if _ABOUT_HOW.search(sentence):
        return "talk"
    found: Demand = "talk"
    for clause in _clauses(sentence):
        kind = _in_clause(clause, sentence, about=about)
        if kind == "change":
            return kind
        found = kind if kind != "talk" else found
    return found


def _clauses(sentence: str) -> Iterator[str]:
    for clause in _CLAUSE.split(sentence.lstrip("¿¡-*• ")):
        yield clause.strip(" \"'«»“”")


def _in_clause(clause: str, sentence: str, *, about: bool) -> Demand:
    lead = _LEAD.match(clause)
    start = lead.end() if lead else 0
    if (verb := _VERB.match(clause, start)) is not None and not _NO_VERB.match(clause, verb.end()):
        return _meant(verb, sentence, about=about)
    if (end := _GERMAN_END.search(clause)) is not None and not _EXPLAINS.match(clause):
        return _meant(end, sentence, about=about)
    return "talk"


def _meant(verb: re.Match[str], sentence: str, *, about: bool) -> Demand:
    """Say what a verb comes to, with what it is said of."""
    if _WORDS.search(sentence) and not about:
        return "talk"
    if verb["strong"]:
        return "change"
    if not about and not _THING.search(sentence.replace(verb[0], " ", 1)) and not _CALL.search(sentence):
        return "talk"
    if not about and _SAMPLE.search(sentence) and not _HERE.search(sentence):
        return "talk"
    return "change" if verb["weak"] else "run"

"""An answer that describes work instead of doing it: what models below 8B write where they should call a tool."""

import re
from typing import Final

_FENCE: Final = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*\n(?P<code>.*?)(?:^[ \t]*(?P=fence)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_STEP: Final = re.compile(
    r"^\s*(?:#{1,6}\s*)?(?:\*\*)?(?:(?:step|schritt|étape|paso)\s*)?\d{1,2}[.):]\s*(?:\*\*)?(?:first|then|finally|"
    r"next)?,?\s*"
    r"(?:open|run|read|look|check|replace|change|find|identify|locate|modify|update|edit|fix|add|save|create|verify|"
    r"test|"
    r"remove|delete|rename|install|execute|navigate|copy|review|examine|correct|ensure|make|use|write|import|"
    r"öffne\w*|ändere\w*|ersetze\w*|führe\w*|prüfe\w*|speicher\w*|ouvr\w*|remplac\w*|lanc\w*|exécut\w*|modifi\w*|"
    r"abr\w*|reemplaz\w*|ejecut\w*|cambi\w*)\b",
    re.IGNORECASE | re.MULTILINE,
)
_STEPS: Final = 2
_MOST: Final = 8_000  # characters that are looked at, of the beginning and of the end: signs stand in both

# The person is told to do it.
_TOLD: Final = re.compile(
    r"\byou (?:can|could|should|need to|must|will need to|may|might|have to|'ll need to)\s+(?:now |then |also |"
    r"first |either |"
    r"simply |just |use the following[^.]{0,40} to |try to |manually )?(?:run|execute|use|replace|change|fix|modify|"
    r"update|"
    r"add|edit|open|save|create|check|test|verify|correct|apply|copy|install|follow|try|look|write|rename|remove|"
    r"delete)\b|"
    r"\b(?:to (?:fix|solve|resolve|correct|address|prove|verify|do|achieve|accomplish|rename|add|"
    r"implement)\b[^.\n]{0,80},? "
    r"(?:you|we) (?:can|could|should|need|must|will|have)|(?:follow|here are) (?:these|the) (?:following )?steps)\b|"
    r"\b(?:please )?(?:try running|run the following|execute the following|replace the (?:line|code|function|content)|"
    r"save (?:the|this) (?:file|code|script)|open the file|make sure (?:you|to) (?:run|save|replace))\b|"
    r"\b(?:du|sie) (?:kannst|musst|solltest|konnen|können|mussen|müssen|sollten)\b[^\n]{0,80}\b(?:ausführen|ändern|"
    r"ersetzen|"
    r"anpassen|hinzufügen|korrigieren|speichern|öffnen|löschen|umbenennen)\b|\bführe (?:den|folgenden|das|die)\b|"
    r"\b(?:vous (?:pouvez|devez|devriez)|tu (?:peux|dois|devrais))\s+(?:exécuter|lancer|remplacer|modifier|changer|"
    r"corriger|"
    r"ajouter|supprimer)\b|\b(?:puedes|debes|deberías|puede|debe)\s+(?:ejecutar|reemplazar|cambiar|modificar|corregir|"
    r"añadir|agregar|eliminar)\b",
    re.IGNORECASE,
)
# It is shown instead of written.
_SHOWN: Final = re.compile(
    r"\b(?:here(?:'s| is| are)|below is|this is|see) (?:the|a|an|how|your|what|my|some) ?(?:\w+ ){0,4}?(?:corrected|"
    r"fixed|updated|"
    r"modified|revised|complete|improved|new|correct|refactored|version|code|script|function|example|implementation|"
    r"test|change|file|content)\w*|"
    r"\b(?:the )?(?:corrected|fixed|updated|modified|revised|refactored) (?:version|code|function|script|file|test|"
    r"implementation|class|line|method)\b|"
    r"\b(?:should|would|could|must) (?:look like|be changed to|be replaced (?:with|by)|read|be)"
    r"(?: this| the following|:)|"
    r"\bhier ist (?:der|die|das) (?:korrigierte|geänderte|aktualisierte|neue|angepasste)\w*|"
    r"\bvoici (?:le|la|une?) (?:\w+ )?(?:corrigée?|modifiée?|version|code|fonction)|\b(?:aquí|aqui) (?:está|tienes) "
    r"(?:el|la|una?) (?:\w+ )?(?:corregid[oa]|versión|código|función|modificad[oa])",
    re.IGNORECASE,
)
# It is announced, and then the answer ends.
_ANNOUNCED: Final = re.compile(
    r"\b(?:i(?:'ll| will| am going to|'m going to| need to| would| can| should)|let me|let's|we (?:need|should|will|"
    r"can|have)(?: to)?|"
    r"first,? (?:i|we|let)(?:'ll| will| need| should)?(?: to)?|ich werde|ich schaue|lass mich|je vais|voy a)\s+"
    r"(?:now |first |then |start by |begin by |also |mir |zuerst |jetzt |d'abord |primero )*"
    r"(?:read|look|check|open|run|execute|fix|examine|inspect|analy[sz]e|review|need|use|call|start|modify|change|update|"
    r"edit|create|see|"
    r"take|find|investigate|search|lesen|ansehen|prüfen|öffnen|beheben|reparieren|die|den|das|lire|ouvrir|corriger|"
    r"regarder|"
    r"leer|abrir|corregir|revisar|ejecutar)\b",
    re.IGNORECASE,
)
# It says that it was done, without a call.
_CLAIMED: Final = re.compile(
    r"\bi(?:'ve| have)? (?:now |just |already |successfully )?(?:fixed|corrected|updated|changed|modified|renamed|"
    r"added|created|replaced|"
    r"removed|ran|run|executed|verified|implemented|deleted|tested|refactored|rewritten|written|committed)\b|"
    r"\b(?:the )?(?:bug|test|tests|issue|function|file|code|problem|error|change)s? (?:has|have) (?:now |been )*"
    r"(?:been )?(?:fixed|corrected|updated|resolved|renamed|changed|modified|added|created|applied|made)\b|"
    r"\b(?:all )?tests (?:now )?pass(?:ed)?\b|"
    r"\bich habe\b[^\n]{0,80}\b(?:behoben|geändert|korrigiert|hinzugefügt|ersetzt|erstellt|gelöscht|umbenannt|"
    r"ausgeführt)\b|"
    r"\bj'ai (?:corrigé|modifié|ajouté|remplacé|supprimé|créé|renommé|exécuté)\b|"
    r"\bhe (?:corregido|cambiado|modificado|añadido|agregado|creado|eliminado|ejecutado|arreglado)\b",
    re.IGNORECASE,
)
# It asks back, refuses, or says that there is nothing to do: an answer, whatever stands beside it.
_ASKS_BACK: Final = re.compile(
    r"\b(?:which (?:file|function|test|one|version|of)|what (?:should|would|do you|exactly|is the (?:name|path|"
    r"expected))|"
    r"do you (?:want|mean|have)|would you like|should i|could you (?:tell|clarify|specify|say|confirm|share|provide)|"
    r"can you (?:tell|clarify|specify|say|confirm|share|provide)|please (?:specify|clarify|tell me|confirm|provide|"
    r"share|let me know which)|"
    r"soll ich|welche|meinst du|möchtest du|veux-tu|voulez-vous|quel|souhaitez|quieres|cuál|prefieres)\b[^?\n]*\?\s*$|"
    r"\b(?:i (?:cannot|can't|won't|am not (?:able|allowed)|do not have|don't have|could not|couldn't|did not|didn't)|"
    r"(?:permission mode|read-only|not allowed)|nothing (?:needs|has) to (?:be )?change|nothing to (?:do|change|"
    r"fix)|there is no (?:file|test|function|such)|"
    r"ich kann (?:das |die |den )?nicht|es gibt nichts|je ne peux pas|no puedo)\b",
    re.IGNORECASE,
)


def described_instead_of_acting(answer: str, *, asked_for_work: bool) -> bool:
    """Say whether a complete answer to a message that asked for work, where tools were on offer and none was called,
    describes what should have been done: code that is shown instead of written, steps for the person, an announcement
    without what it announces, a claim of what nobody did. A question back, a refusal, a plain sentence are answers.
    """
    text = answer.strip()
    text = text if len(text) <= 2 * _MOST else f"{text[:_MOST]}\n{text[-_MOST:]}"
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if not asked_for_work or not text:
        return False
    prose = _FENCE.sub("\n", text).strip()
    if _ASKS_BACK.search(prose):
        return False
    if any(found["code"].strip() for found in _FENCE.finditer(text)) or len(_STEP.findall(prose)) >= _STEPS:
        return True
    return any(signs.search(prose) for signs in (_TOLD, _SHOWN, _ANNOUNCED, _CLAIMED))

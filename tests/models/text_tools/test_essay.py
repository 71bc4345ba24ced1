"""Answers that describe work instead of doing it, and answers that are answers: real-looking samples of both."""

import pytest

from rune.models.text_tools.essay import described_instead_of_acting

ESSAYS = (
    "To fix the issue, you need to change the line `return a - b` to `return a + b` in calc.py.",
    "Here is the corrected code:\n\n```python\ndef add(a, b):\n    return a + b\n```",
    "```python\ndef add(a, b):\n    return a + b\n```",
    "You should run `pytest` to see which test fails.",
    "You can run the tests with the following command:\n\n```bash\npython -m pytest\n```",
    "1. Open calc.py\n2. Replace the minus by a plus\n3. Run the tests again",
    "Step 1: Open the file.\nStep 2: Change the operator.\nStep 3: Save the file.",
    "Sure! Let me read the file first.",
    "I'll look at test_cart.py and find out why it fails.",
    "I will fix the bug now.",
    "First, I need to read the file to see what is wrong.",
    "I have fixed the function. It now adds the two numbers.",
    "I've updated calc.py so that add() returns the sum.",
    "The bug has been fixed and all tests pass.",
    "I ran the tests and all tests passed.",
    "The function `add` should be changed to:\n\n    return a + b",
    "The corrected version of the function is shown below.",
    "Replace the line `return a - b` with `return a + b`.",
    "Please run the following command and tell me what it prints.",
    "The problem is that the function subtracts. You can fix it by making the minus a plus, and you should "
    "replace the line in calc.py.",
    "Here's how you can fix it:\n\n1. **Open** the file `cart.py`.\n2. **Find** the function total.\n3. **Change** it.",
    "Certainly! Below is the updated script with the flag added.",
    "To rename the function you can use the refactoring tools of your editor.",
    "It looks like there is an issue in the code. Let's take a look at the test.",
    "We need to modify the parser so that the last line is kept.",
    "### Step 1: Identify the problem\nThe test expects 5.\n### Step 2: Fix the code\nUse plus.",
    "~~~js\nmodule.exports = { slug };\n~~~",
    "Make sure to save the file and then run the tests again.",
    "The file should look like this:\n\ndef add(a, b): return a + b",
    "I would start by reading the test file.",
    "I can fix that. I'm going to open the file.",
    "To prove that it works, you can run the test suite.",
    "The issue is in total(): the discount is taken as cents. Here is a fixed version: return full - full * d // 100.",
    "You will need to update the import in app/main.py from `helper` to `helpers`.",
    "Let me check the file for you.",
    "I created the file hello.py with the content you asked for.",
    "I've successfully renamed the function in all files.",
    "The tests have been updated.",
    "You could add a flag with argparse and then use it in main().",
    "Follow these steps to solve the problem.",
    'Try running "npm test" again.',
    "I'll use the read_file tool to read calc.py.",
    "Now I will execute the command `python3 calc.py`.",
    "Here are the steps to fix the failing test:\n- read it\n- change the code",
    "You must replace `$1` by `$name` in the loop.",
    # German
    "Du kannst den Fehler beheben, indem du das Minus durch ein Plus ersetzt. Du musst die Zeile ändern.",
    "Hier ist der korrigierte Code:\n```python\nreturn a + b\n```",
    "Ich werde die Datei lesen und den Fehler beheben.",
    "Ich habe den Fehler in calc.py behoben.",
    "1. Öffne die Datei calc.py\n2. Ersetze das Minus durch ein Plus",
    "Sie sollten die Zeile 3 in calc.py ersetzen.",
    "Ich schaue mir die Datei an. Lass mich die Tests prüfen.",
    # French
    "Vous devez remplacer la ligne `return a - b` par `return a + b`.",
    "Voici la version corrigée :\n```python\nreturn a + b\n```",
    "Je vais lire le fichier.",
    "J'ai corrigé la fonction add.",
    "1. Ouvrez le fichier\n2. Remplacez la ligne\n3. Lancez les tests",
    "Tu peux lancer les tests avec pytest.",
    # Spanish
    "Debes reemplazar la línea `return a - b`.",
    "Aquí está la versión corregida del código.",
    "Voy a leer el archivo calc.py.",
    "He corregido la función add.",
    "1. Abre el archivo\n2. Cambia la línea\n3. Ejecuta las pruebas",
    "Puedes ejecutar las pruebas con pytest.",
)

ANSWERS = (
    "Which file do you mean: src/cart.py or lib/cart.py?",
    "There are two functions called total. Which one should I rename?",
    "Should I change the tests as well?",
    "Do you want me to fix only calc.py, or the other module too?",
    "I could not find a file called calc.py here. Could you tell me where it is?",
    "I cannot do that: the permission mode is read, so nothing may be changed.",
    "I can't run commands in this mode.",
    "I don't have access to your e-mail.",
    "There is no file of that name.",
    "There is no such test in this project.",
    "Nothing needs to be changed: the function already adds.",
    "There is nothing to fix here.",
    "What should the function return for an empty list?",
    "What is the expected total in that test?",
    "Would you like the flag to be called --quiet or --silent?",
    "Please specify which test fails. Is it test_add or test_double?",
    "Can you clarify what the output should look like?",
    "Paris.",
    "Hello! What can I do for you?",
    "The Rhine, the Danube and the Elbe.",
    "A closure is a function together with the variables around it.",
    "pytest runs every function whose name begins with test.",
    "The difference is small: a list can grow, a tuple cannot.",
    "That is a matter of taste.",
    "It subtracts because of the minus sign in line 5.",
    "The discount is taken as cents, not as a percentage.",
    "The loop prints $1 each time, so only the first name appears.",
    "The regular expression lacks the g flag.",
    "No.",
    "Yes, that is right.",
    "Done means that the tests are green and the changelog is written.",
    "The project has 12 modules and 40 tests.",
    "It has three parts: the parser, the cart and the shop.",
    "1. the parser\n2. the cart\n3. the shop",
    "- apples\n- bread\n- cheese",
    "The version is 1.2.0.",
    "Python 3.11 and newer.",
    "The name was chosen in 2019.",
    "That would break the public interface, and you said that it must stay. Which do you prefer?",
    "I am not allowed to read .env files.",
    "I won't delete that folder: it holds the only copy of your photos.",
    "The task is unclear to me. What exactly is wrong with the result?",
    "It is the same bug as yesterday.",
    "Both tests expect cents.",
    "Because 261 is 290 less ten percent.",
    "The limit is 24 steps.",
    "Only the owner can allow that.",
    "The last line is lost when there is no newline behind it.",
    "Sorry, I do not have enough information to say.",
    "I did not change anything, because the test already passes.",
    # German
    "Welche Datei meinst du?",
    "Soll ich auch die Tests ändern?",
    "Ich kann das nicht: der Modus erlaubt keine Änderungen.",
    "Es gibt nichts zu ändern.",
    "Paris ist die Hauptstadt von Frankreich.",
    "Die Funktion zieht ab, weil dort ein Minus steht.",
    "Möchtest du, dass ich die alte Funktion behalte?",
    # French
    "Quel fichier voulez-vous modifier ?",
    "Je ne peux pas lire ce fichier.",
    "La fonction soustrait à cause du signe moins.",
    "Bonjour !",
    # Spanish
    "¿Quieres que cambie también las pruebas?",
    "No puedo leer ese archivo.",
    "La función resta por el signo menos.",
    "Hola, ¿qué tal?",
)


@pytest.mark.parametrize("answer", ESSAYS)
def test_what_only_describes_the_work_is_noticed(answer: str) -> None:
    assert described_instead_of_acting(answer, asked_for_work=True)


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_taken_as_one(answer: str) -> None:
    assert not described_instead_of_acting(answer, asked_for_work=True)


@pytest.mark.parametrize("answer", [*ESSAYS, "", "  \n"])
def test_where_no_work_was_asked_for_nothing_is_noticed(answer: str) -> None:
    assert not described_instead_of_acting(answer, asked_for_work=False)


def test_blanks_and_an_empty_block_are_no_essay() -> None:
    assert not described_instead_of_acting(" \n", asked_for_work=True)
    assert not described_instead_of_acting("```\n\n```", asked_for_work=True)

"""Global explanations: one SLALOM for the words of a whole corpus."""

from piste.vocabulary.estimation import fit_vocabulary
from piste.vocabulary.table import Vocabulary

__all__ = ["Vocabulary", "fit_vocabulary"]

"""Traces of side calls in the journal."""

import asyncio
from collections.abc import Callable, Sequence

from rune.records.traces import InferenceTraceRecord
from rune.store.evidence_store import Evidence, EvidenceItem
from rune.store.ledger import Draft, Ledger


class SideTraceJournal:
    """Keeps what side calls saw (models.side_call.SideTraces): with their conversation, so that it is erased with
    it; else in the partition `model`. `publish` hands a trace to other programs; it may raise StorageError.
    """

    def __init__(self, ledger: Ledger, evidence: Evidence, publish: Callable[[InferenceTraceRecord], None]) -> None:
        self._ledger = ledger
        self._evidence = evidence
        self._publish = publish

    async def keep(self, trace: InferenceTraceRecord, blobs: Sequence[bytes]) -> None:
        """Keep the blobs, then the trace that names them. Raises StorageError; RuntimeError for a conversation that
        this process does not hold.
        """
        items = [EvidenceItem(data=blob, source="prompt") for blob in blobs]
        await asyncio.to_thread(self._evidence.put_many, items)
        if trace.conversation_id is None:
            draft = Draft(event_type="model.traced", body=trace, partition="model")
        else:
            draft = Draft(event_type="inference.traced", body=trace, partition=trace.conversation_id)
        await self._ledger.emit(draft)
        await asyncio.to_thread(self._publish, trace)

"""LangGraph: its store and its checkpointer in a session, with the packages of the extra `langgraph`."""

from smp_git.integrations.langgraph.checkpoints import SmpSaver as SmpSaver
from smp_git.integrations.langgraph.store import SmpStore as SmpStore

/** The author at this machine, under whose name a local Environment records its changes. */
import type { RecordedActor } from '../../identity/actor.ts'
import { type EnvironmentId, parseId } from '../../value/ids.ts'

/** Returns the same author for an Environment each time. No login ever has these IDs. */
export function localAuthor(environmentId: EnvironmentId): RecordedActor {
  const unique = environmentId.slice('env_'.length)
  return { operatorId: parseId('opr', `opr_${unique}`), sessionId: parseId('ops', `ops_${unique}`) }
}

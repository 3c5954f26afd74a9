/**
 * Writes a state as `state` messages, several if one cannot hold the result, or as a `patch`. The
 * text of the result or of the patch is that of all subscribers; only the head is of one.
 */
import type { ReleaseId } from '../../../value/ids.ts'
import { REALTIME_MESSAGE_BYTES_MAX, type RealtimeVersion } from '../../../wire/realtime.ts'

/** Bytes of the message around a result, a fragment of it, or a patch. */
const HEAD_BYTES_MAX = 512
/** Bound on the bytes of one UTF-16 unit of a fragment, escaped or not. */
const FRAGMENT_UNITS = Math.floor((REALTIME_MESSAGE_BYTES_MAX - HEAD_BYTES_MAX) / 3)

export interface StateHead {
  readonly version: RealtimeVersion
  readonly subscriptionId: string
  readonly revision: number
  readonly snapshotSequence: number | null
  readonly releaseId: ReleaseId
}

/** Returns the messages of a state; `resultText` is tagged JSON. */
export function stateMessages(head: StateHead, resultText: string): Iterator<string> {
  const start = `{"version":${head.version},"type":"state",${idOf(head)},${placeOf(head)}`
  const isOneMessage =
    resultText.length <= FRAGMENT_UNITS ||
    (resultText.length <= REALTIME_MESSAGE_BYTES_MAX &&
      Buffer.byteLength(resultText) <= REALTIME_MESSAGE_BYTES_MAX - HEAD_BYTES_MAX)
  return isOneMessage ? [`${start},"result":${resultText}}`].values() : parts(start, resultText)
}

/** Returns the message of a patch to the revision before; `patch` has its fields from `path`. */
export function patchMessage(head: StateHead, patch: string): string {
  const start = `{"version":${head.version},"type":"patch",${idOf(head)}`
  return `${start},"base":"${head.revision - 1}",${placeOf(head)},${patch}}`
}

function idOf({ subscriptionId }: StateHead): string {
  return `"subscriptionId":"${subscriptionId}"`
}

/** Returns the fields that say which state of the subscription it is. */
function placeOf({ revision, snapshotSequence, releaseId }: StateHead): string {
  const sequence = snapshotSequence === null ? 'null' : `"${snapshotSequence}"`
  return `"revision":"${revision}","snapshotSequence":${sequence},"releaseId":"${releaseId}"`
}

function* parts(start: string, text: string): Generator<string> {
  const cuts = [0]
  while (cuts.at(-1)! < text.length) cuts.push(cutAfter(text, cuts.at(-1)! + FRAGMENT_UNITS))
  const count = cuts.length - 1
  for (let part = 1; part <= count; part++) {
    const fragment = JSON.stringify(text.slice(cuts[part - 1], cuts[part]))
    yield `${start},"part":${part},"parts":${count},"fragment":${fragment}}`
  }
}

/** Returns the last boundary between two code points at or before `at`. */
function cutAfter(text: string, at: number): number {
  if (at >= text.length) return text.length
  const last = text.charCodeAt(at - 1)
  return last >= 0xd800 && last <= 0xdbff ? at - 1 : at
}

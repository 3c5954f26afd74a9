/** Splits a state into `state` messages: several parts if one message cannot hold the result. */
import type { ReleaseId } from '../../../value/ids.ts'
import { REALTIME_MESSAGE_BYTES_MAX } from '../../../wire/realtime.ts'

/** Bytes of the message around a result or a fragment of it. */
const HEAD_BYTES_MAX = 512
/** Bound on the bytes of one UTF-16 unit of a fragment, escaped or not. */
const FRAGMENT_UNITS = Math.floor((REALTIME_MESSAGE_BYTES_MAX - HEAD_BYTES_MAX) / 3)

export interface StateHead {
  readonly subscriptionId: string
  readonly revision: number
  readonly snapshotSequence: number | null
  readonly releaseId: ReleaseId
}

/** Returns the messages of a state; `resultText` is tagged JSON. */
export function stateMessages(head: StateHead, resultText: string): Iterator<string> {
  const { subscriptionId, revision, snapshotSequence, releaseId } = head
  const sequence = snapshotSequence === null ? 'null' : `"${snapshotSequence}"`
  const start =
    `{"version":1,"type":"state","subscriptionId":"${subscriptionId}","revision":"${revision}",` +
    `"snapshotSequence":${sequence},"releaseId":"${releaseId}"`
  const isOneMessage =
    resultText.length <= FRAGMENT_UNITS ||
    (resultText.length <= REALTIME_MESSAGE_BYTES_MAX &&
      Buffer.byteLength(resultText) <= REALTIME_MESSAGE_BYTES_MAX - HEAD_BYTES_MAX)
  return isOneMessage ? [`${start},"result":${resultText}}`].values() : parts(start, resultText)
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

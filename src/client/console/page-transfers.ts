/** Transfers of the page: responses that are not JSON, and bodies that are files. */
import { assert } from '../../errors/assert.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { ManagementOperation } from '../../wire/operations/operation.ts'
import type { AnyInput } from '../requests/operation-requests.ts'
import type { OnBytes, OnHead } from '../requests/requests.ts'
import type { ConsoleSession } from './console-sessions.ts'

/** Bytes of one range of a download: servers send at most 64 MiB of an object at a time. */
export const RANGE_BYTES = 32 * 1024 * 1024

/** Receives a download. */
export interface DownloadSink {
  /** Called once, before the bytes. */
  begin(file: DownloadedFile): void
  /** Resolves when the next bytes may be read. */
  readonly write: OnBytes
}

export interface DownloadedFile {
  /** A name that every system takes as it is. */
  readonly name: string
  /** Null if the server does not tell it. */
  readonly length: number | null
}

interface LengthSink extends Pick<DownloadSink, 'write'> {
  begin(length: number | null): void
}

type Session = Pick<ConsoleSession['session'], 'anyBytes'>

/**
 * Reads the response of an operation into the sink: in ranges of the same bytes where the operation
 * has them, otherwise whole. Throws what the requests throw.
 */
export async function downloadInto(
  sink: LengthSink,
  session: Session,
  operation: ManagementOperation,
  input: AnyInput,
): Promise<void> {
  if ('range' in operation.headers) return downloadRanges(sink, session, operation, input)
  await session.anyBytes(operation, sink.write, input, ({ headers }) =>
    sink.begin(lengthOf(headers.get('content-length'))),
  )
}

async function downloadRanges(
  sink: LengthSink,
  session: Session,
  operation: ManagementOperation,
  input: AnyInput,
): Promise<void> {
  let [done, total, tag] = [0, Number.POSITIVE_INFINITY, '']
  const receive: OnHead = ({ status, headers }) => {
    const range = RANGE.exec(headers.get('content-range') ?? '')
    // Without a range the response is the whole body, or that of another object.
    const isExpected = status === 200 ? done === 0 : Number(range?.[1] ?? -1) === done
    const size = lengthOf(status === 200 ? headers.get('content-length') : (range?.[2] ?? null))
    if (!isExpected || size === null || (done > 0 && size !== total)) throw replaced()
    if (done === 0) {
      total = size
      tag = headers.get('etag') ?? ''
      sink.begin(total)
    }
  }
  const write: OnBytes = (bytes) => {
    done += bytes.length
    return sink.write(bytes)
  }
  while (done < total) {
    const before = done
    const range = `bytes=${done}-${done + RANGE_BYTES - 1}`
    const headers = { ...input.headers, range, 'if-range': tag === '' ? undefined : tag }
    try {
      await session.anyBytes(operation, write, { ...input, headers }, receive)
    } catch (error) {
      // No range of an empty body can be satisfied.
      if (done > 0 || !isFault(error, 'RANGE_INVALID')) throw error
      return session.anyBytes(operation, write, input, receive)
    }
    if (done === before && done < total) throw replaced()
  }
}

const RANGE = /^bytes ([0-9]+)-[0-9]+\/([0-9]+)$/

function lengthOf(text: string | null): number | null {
  return text !== null && /^[0-9]{1,15}$/.test(text) ? Number(text) : null
}

function replaced(): Fault {
  return new Fault('CLIENT_RESPONSE_INVALID', {
    detail: 'It was replaced during the download.',
  })
}

/**
 * Returns the chunks as a stream that reads one for each read of it, and fails unless they have
 * `length` bytes together.
 */
export function streamOf(
  chunks: AsyncIterator<Uint8Array>,
  length: number,
): ReadableStream<Uint8Array> {
  let left = length
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await chunks.next()
        if (next.done !== true) {
          left -= next.value.length
          controller.enqueue(next.value)
        }
        assert(left >= 0, 'HTTP bounds a body by its length')
        if (next.done !== true) return
        if (left === 0) controller.close()
        else controller.error(new Fault('CLIENT_USAGE', { detail: 'The file was cut off.' }))
      },
    },
    { highWaterMark: 0 },
  )
}

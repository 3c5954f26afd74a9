/** Streams whose length is announced before their bytes are available. */
import { Fault } from '../../errors/fault.ts'

export interface ByteSource {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

/**
 * Returns a stream of exactly `length` bytes, at least 1. Rejects as the first read does. A source
 * that is too short or too long fails the stream, so that its reader does not take it for complete.
 */
export async function exactly(
  source: ByteSource,
  length: number,
): Promise<ReadableStream<Uint8Array>> {
  let left = length
  const next = async (): Promise<Uint8Array | null> => {
    try {
      const { done, value } = await source.read()
      if (done && left === 0) return null
      if (done || value === undefined) throw otherLength(`${left} bytes too few`)
      left -= value.length
      if (left < 0) throw otherLength('too many bytes')
      return value
    } catch (error) {
      await source.cancel().catch(() => undefined)
      throw error
    }
  }
  let first = await next()
  return new ReadableStream({
    async pull(controller) {
      const chunk = first ?? (await next())
      first = null
      if (chunk === null) controller.close()
      else controller.enqueue(chunk)
    },
    cancel: () => source.cancel(),
  })
}

function otherLength(detail: string): Fault {
  return new Fault('UNAVAILABLE', { detail: `the store of files sent ${detail}` })
}

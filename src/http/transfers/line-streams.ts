/** Response bodies of lines or pieces, such as a followed log, at the rate of the peer. */
import type { TransferPace } from './transfer-pace.ts'

/**
 * Returns a body that requests the next chunk once the peer has taken the last one, so a
 * slow peer holds one chunk in memory. A peer that takes a chunk below the minimum rate is cut. The
 * generator is always closed when the body ends.
 */
export function lineStream(
  lines: AsyncGenerator<string | Uint8Array>,
  pace: TransferPace,
): ReadableStream {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      try {
        for await (const chunk of lines) {
          const cut = () => controller.close(new Error('the lines were taken too slowly'))
          const transfer = pace.begin(cut, chunk.length)
          try {
            // The peer disconnected or was too slow.
            if (!(await controller.write(chunk))) return
            await controller.flush()
          } finally {
            transfer.end()
          }
        }
        controller.close()
      } finally {
        await lines.return(undefined)
      }
    },
    async cancel() {
      await lines.return(undefined)
    },
  }
  return new ReadableStream(source as unknown as UnderlyingSource)
}

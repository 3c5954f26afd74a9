/** Bodies of lines that are written as they come, and as the peer takes them. */
import type { TransferPace } from './transfer-pace.ts'

/**
 * Returns a body that asks for the next chunk of lines once the peer has taken the one before, so a
 * slow peer holds one chunk. A peer that takes a chunk below the minimum rate is cut. However the
 * body ends, the generator is returned.
 */
export function lineStream(lines: AsyncGenerator<string>, pace: TransferPace): ReadableStream {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      try {
        for await (const chunk of lines) {
          const cut = () => controller.close(new Error('the lines were taken too slowly'))
          const transfer = pace.begin(cut, chunk.length)
          try {
            // Nothing is written any more once the peer has gone, or was too slow.
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

/** Embeds the writer thread of the log, which can only be started from text. */
import { type BundledText, isStale, updateModule } from './bundled-text.ts'

const WRITER: BundledText = {
  generator: 'build/embed-log-writer.ts',
  entry: 'src/storage/logs/log-writer.ts',
  module: 'src/storage/logs/log-writer.generated.ts',
  constant: 'LOG_WRITER_SOURCE',
  options: { format: 'esm', external: ['bun:sqlite', 'node:*'] },
}

/** Returns whether the module is stale. */
export function isLogWriterStale(root: string): Promise<boolean> {
  return isStale(root, WRITER)
}

if (import.meta.main) await updateModule(WRITER)

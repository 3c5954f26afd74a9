/** Embeds the writer thread of the document store, which can only be started from text. */
import { type BundledText, isStale, updateModule } from './bundled-text.ts'

const WRITER: BundledText = {
  generator: 'build/embed-writer.ts',
  entry: 'src/documents/sqlite/writer.ts',
  module: 'src/documents/sqlite/writer.generated.ts',
  constant: 'WRITER_SOURCE',
  options: { format: 'esm', external: ['bun:sqlite'] },
}

/** Returns whether the module is stale. */
export function isWriterStale(root: string): Promise<boolean> {
  return isStale(root, WRITER)
}

if (import.meta.main) await updateModule(WRITER)

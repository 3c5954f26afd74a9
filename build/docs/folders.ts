/** The tables of folders in README.md files, from the import rules. */
import { FOLDERS, type Folder, OWNERS } from '../tidy/import-rules.ts'
import { LAYERS } from '../tidy/layers.ts'
import { between, code, table } from './markdown.ts'

/** Replaces the table. `hasReadme` returns whether a folder has a page of its own. */
export function withFolderTable(text: string, hasReadme: (folder: string) => boolean): string {
  return between(text, 'folders', folderTable(hasReadme))
}

/** Replaces the table of what stands inside a folder of src, from the ground up. */
export function withLayerTable(text: string, folder: string): string {
  const rows = Object.entries(LAYERS[folder] ?? {}).map(([name, holds]) => [code(name), holds])
  return between(text, 'layers', table(['Layer', 'What it holds'], rows))
}

function folderTable(hasReadme: (folder: string) => boolean): string {
  const rows = Object.entries(FOLDERS).map(([name, folder]) => [
    hasReadme(name) ? `[${code(name)}](${name}/README.md)` : code(name),
    folder.owns,
    importsText(folder),
    librariesOf(name).map(code).join(', '),
  ])
  return table(['Folder', 'What it owns', 'May import', 'Owns the libraries'], rows)
}

function importsText({ imports }: Folder): string {
  if (imports === 'all') return 'all'
  return imports.length === 0 ? 'nothing' : imports.join(', ')
}

/** Returns the libraries that only this folder, or a few, may import. */
function librariesOf(folder: string): string[] {
  const owned = OWNERS.filter(({ folders }) =>
    folders.some((each) => each === folder || each.startsWith(`src/${folder}/`)),
  )
  return owned.flatMap(({ libraries }) => libraries).filter((library) => library !== 'svc')
}

/** The language service of TypeScript, as editors use it. */
import { join } from 'node:path'
import ts from 'typescript-api'

/** Returns a function that gives the editor's information about the name at the end of a text. */
export function hoverIn(workspace: string, file: string): (text: string) => string {
  const path = join(workspace, 'tsconfig.json')
  const { config } = ts.readConfigFile(path, ts.sys.readFile)
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, workspace)
  const service = ts.createLanguageService({
    readFile: ts.sys.readFile,
    fileExists: ts.sys.fileExists,
    getScriptFileNames: () => [...new Set([...fileNames, file])],
    getScriptVersion: () => '1',
    getScriptSnapshot: (name) => {
      const text = ts.sys.readFile(name)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCompilationSettings: () => options,
    getCurrentDirectory: () => workspace,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
  })
  const source = ts.sys.readFile(file) ?? ''
  return (text) => {
    const end = source.indexOf(text) + text.length
    return ts.displayPartsToString(service.getQuickInfoAtPosition(file, end - 1)?.displayParts)
  }
}

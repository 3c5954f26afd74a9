/** Command lines of tests, written as a user types them. */

/**
 * Returns the words of a command line, separated by white space. An interpolated text never ends a
 * word, so that a path with spaces stays one argument; an interpolated list adds its words.
 */
export function argv(
  texts: TemplateStringsArray,
  ...values: readonly (string | number | readonly string[])[]
): string[] {
  const words: string[] = []
  /** The word that is being read; null between words. */
  let word: string | null = null
  const endWord = (): void => {
    if (word !== null) words.push(word)
    word = null
  }
  for (const [i, text] of texts.entries()) {
    for (const part of text.split(/(\s+)/).filter((each) => each !== '')) {
      if (/^\s/.test(part)) endWord()
      else word = (word ?? '') + part
    }
    const value = values[i]
    if (value === undefined) continue
    if (typeof value !== 'object') {
      word = `${word ?? ''}${value}`
      continue
    }
    const touches = word !== null || /^\S/.test(texts[i + 1]!)
    if (touches) throw new Error('An interpolated list needs white space on both sides.')
    words.push(...value)
  }
  endWord()
  return words
}

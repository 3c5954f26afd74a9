/** Names of operators and devices, chosen by people (contract/wire.md, Identity types). */

/** 1 to 128 code points without control characters. isName also requires NFC. */
export const NAME = /^[^\u0000-\u001f\u007f-\u009f]{1,128}$/u

/** 1 to 128 code points, in NFC, without control characters or lone surrogates. */
export function isName(text: string): boolean {
  return NAME.test(text) && text.isWellFormed() && text.normalize('NFC') === text
}

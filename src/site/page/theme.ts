/** Applies the chosen colours before the page is drawn. */
import { applyTheme, storedTheme } from './themes.ts'

applyTheme(storedTheme())

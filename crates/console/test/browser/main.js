/** The console in a real browser: `node crates/console/test/browser/main.js [PROGRAM]`; `ONLY=TEXT` for stories with this text in their name. */

import './pages.js';
import './looks.js';
import './keyboard.js';
import './rights.js';
import './hostile.js';
import './connection.js';
import './horizon.js';
import './flows.js';
import './targets.js';
import { tellAll } from './story.js';

tellAll();

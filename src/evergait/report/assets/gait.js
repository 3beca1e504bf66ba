// A recorded gait: decoding it, and drawing one moment of it on a canvas as thick lines.

// Base64 of variable-length integers: second differences over time, channel after channel (see gait.py).
function decodeMotion(text, channels) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), numbers = [];
  for (let i = 0, value = 0, factor = 1; i < bytes.length; i++) {
    value += (bytes[i] & 127) * factor;
    factor *= 128;
    if (bytes[i] < 128) {
      numbers.push(value % 2 ? -(value + 1) / 2 : value / 2);
      [value, factor] = [0, 1];
    }
  }
  const frames = numbers.length / channels, motion = new Float64Array(numbers.length);
  for (let c = 0; c < channels; c++) {
    for (let f = 0, speed = 0, place = 0; f < frames; f++) motion[f * channels + c] = place += speed += numbers[c * frames + f];
  }
  return motion;
}

class Gait {
  constructor(robot, record) {
    this.robot = robot;
    this.record = record;
    this.stride = robot.planar ? 4 : 5;
    this.channels = robot.radius.length * this.stride;
    this.motion = decodeMotion(record.motion, this.channels).map((value) => value * robot.quantum);
    this.score = decodeMotion(record.score, 1).map((value) => value / 10);
    this.frames = this.score.length;
    this.duration = record.seconds;
  }

  // Time → frame with fraction; the last frame may be less than a whole interval after the one before.
  frameAt(seconds) {
    return clamp(seconds * this.robot.frameRate, 0, this.frames - 1);
  }

  // Positions of all parts between two frames.
  pose(frame) {
    const low = Math.floor(frame), high = Math.min(low + 1, this.frames - 1), part = frame - low, n = this.channels;
    const pose = new Float64Array(n);
    for (let c = 0; c < n; c++) pose[c] = this.motion[low * n + c] * (1 - part) + this.motion[high * n + c] * part;
    return pose;
  }

  // The middle of the first part, usually the torso.
  centre(frame) {
    const at = Math.round(frame) * this.channels, m = this.motion;
    return [(m[at] + m[at + 2]) / 2, (m[at + 1] + m[at + 3]) / 2];
  }

  // A calm camera: the mean of where all parts are over half a second around now.
  camera(frame) {
    const reach = Math.round(this.robot.frameRate / 4), { motion, channels, stride } = this;
    let x = 0, y = 0, n = 0;
    for (let f = Math.round(frame) - reach; f <= Math.round(frame) + reach; f++) {
      const at = clamp(f, 0, this.frames - 1) * channels;
      for (let c = at; c < at + channels; c += stride) {
        x += motion[c] + motion[c + 2];
        y += motion[c + 1] + motion[c + 3];
        n += 2;
      }
    }
    return [x / n, y / n];
  }

  distance(frame) {
    return this.centre(frame)[0] - this.centre(0)[0];
  }

  fell(seconds) {
    return this.record.ended !== "truncated" && seconds >= this.duration - 1e-6;
  }

  outcome() {
    const word = { terminated: "fell", diverged: "physics diverged" }[this.record.ended];
    return word ? `${word} after ${format(this.duration, 1)} s` : `lasted all ${format(this.duration, 0)} s`;
  }
}

class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  draw(gait, seconds, task) {
    if (!gait) { this.clear(); return; }
    const frame = gait.frameAt(seconds), { robot, stride } = gait, pose = gait.pose(frame);
    const first = Math.max(0, Math.floor(frame) - Math.round(robot.frameRate * 3)), trail = [];
    for (let f = first; f <= frame; f++) trail.push(gait.centre(f));
    const parts = robot.radius.map((_, i) => pose.subarray(i * stride, i * stride + 5));
    this.scene(robot, { parts, camera: gait.camera(frame), trail, colour: `--task-${task % 7}`, fallen: gait.fell(seconds) });
  }

  // An empty canvas as large as the page has it; none if it is not in sight.
  clear() {
    const { canvas, context: c } = this, ratio = Math.min(devicePixelRatio || 1, 2), width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return null;
    const wanted = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wanted[0] || canvas.height !== wanted[1]) [canvas.width, canvas.height] = wanted;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    return { width, height };
  }

  // A robot at one moment: its parts as [x1, y1, x2, y2, depth], where to look, the way it came; returns the view.
  scene(robot, { parts, camera, trail, colour, fallen, size = 1 }) {
    const box = this.clear();
    if (!box) return null;
    const { width, height } = box, [[left, bottom], [right, top]] = robot.bounds, room = Math.max(1, size);
    const scale = Math.min(width / (right - left), height / (top - bottom)) / room;
    const upright = robot.ground !== null || !robot.follow;  // seen from the side: the floor stays where it is
    const cx = robot.follow ? camera[0] : (left + right) / 2, cy = upright ? (room * (top + bottom)) / 2 : camera[1];
    const X = (x) => width / 2 + (x - cx) * scale, Y = (y) => height / 2 - (y - cy) * scale;
    this.floor(robot, X, Y, width, height, cx, cy, scale);
    if (robot.follow) this.trail(trail, colour, X, Y);
    for (const { ends, radius } of robot.scenery) this.part(ends, radius, true, resolved("--line-strong"), X, Y, scale);
    this.robot(robot, parts, resolved(fallen ? "--fallen" : colour), size, X, Y, scale);
    return { cx, cy, scale, width, height };
  }

  floor(robot, X, Y, width, height, cx, cy, scale) {
    const c = this.context;
    c.strokeStyle = resolved("--line");
    c.fillStyle = resolved("--muted");
    c.font = "11px system-ui, sans-serif";
    c.textAlign = "center";
    c.lineWidth = 1;
    const reach = width / scale / 2 + 1, step = reach > 8 ? 5 : reach > 1.2 ? 1 : 0.1;
    if (robot.ground !== null) {
      const y = Y(robot.ground);
      c.fillStyle = resolved("--ground");
      c.fillRect(0, y, width, height - y);
      c.fillStyle = resolved("--muted");
      c.strokeStyle = resolved("--line-strong");
      c.beginPath(); c.moveTo(0, y); c.lineTo(width, y); c.stroke();
      if (!robot.follow || !robot.planar) return;
      for (let x = Math.ceil((cx - reach) / step) * step; x < cx + reach; x += step) {
        c.beginPath(); c.moveTo(X(x), y); c.lineTo(X(x), y + 6); c.stroke();
        c.fillText(`${format(x, 0)} m`, X(x), y + 18);
      }
    } else if (robot.follow) {
      const tall = height / scale / 2 + 1;  // looked at from above: a grid of metres
      for (let x = Math.ceil(cx - reach); x < cx + reach; x++) {
        c.beginPath(); c.moveTo(X(x), 0); c.lineTo(X(x), height); c.stroke();
        c.fillText(`${format(x, 0)} m`, X(x), height - 6);
      }
      for (let y = Math.ceil(cy - tall); y < cy + tall; y++) {
        c.beginPath(); c.moveTo(0, Y(y)); c.lineTo(width, Y(y)); c.stroke();
      }
    }
  }

  trail(places, colour, X, Y) {
    const c = this.context;
    c.strokeStyle = resolved(colour);
    c.globalAlpha = 0.35;
    c.lineWidth = 1.5;
    c.beginPath();
    places.forEach(([x, y], i) => c[i ? "lineTo" : "moveTo"](X(x), Y(y)));
    c.stroke();
    c.globalAlpha = 1;
  }

  robot(robot, parts, near, size, X, Y, scale) {
    const outline = resolved("--stage"), far = mix(near, outline, 0.45);
    // Far parts first: by depth where there is one, else the limb that the model paints in another colour.
    const order = [...parts.keys()].sort((a, b) => (robot.planar ? robot.far[b] - robot.far[a] : parts[b][4] - parts[a][4]) || a - b);
    for (const i of order) {
      this.part(parts[i], size * robot.radius[i] + 1.5 / scale, robot.round[i], outline, X, Y, scale);
      this.part(parts[i], size * robot.radius[i], robot.round[i], robot.planar && robot.far[i] ? far : near, X, Y, scale);
    }
  }

  part([x1, y1, x2, y2], radius, rounded, colour, X, Y, scale) {
    const c = this.context;
    c.strokeStyle = c.fillStyle = colour;
    c.lineCap = rounded ? "round" : "butt";
    c.lineWidth = 2 * radius * scale;
    c.beginPath();
    if (Math.hypot(x2 - x1, y2 - y1) * scale < 0.5) {  // browsers draw nothing for a line without length
      c.arc(X(x1), Y(y1), radius * scale, 0, 7);
      c.fill();
      return;
    }
    c.moveTo(X(x1), Y(y1));
    c.lineTo(X(x2), Y(y2));
    c.stroke();
  }
}

// Between two #rrggbb colours.
function mix(a, b, share) {
  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const [from, to] = [channels(a), channels(b)];
  return `rgb(${from.map((value, i) => Math.round(value * (1 - share) + to[i] * share)).join(",")})`;
}
